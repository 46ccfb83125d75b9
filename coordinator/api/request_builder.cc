#include "coordinator/api/request_builder.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/step/descriptor.h"

namespace tandem::coordinator {
namespace {

static_assert(kMaxLogprobs == step::kMaxTopLogprobs);

// Random ids and seeds: unpredictable enough to be unique, never used for secrets.
uint64_t Draw() {
  static std::mutex mutex;
  static std::mt19937_64 engine{std::random_device{}()};
  std::lock_guard lock(mutex);
  return engine();
}

template <typename T>
absl::Status Bad(const char* field, const T& found, const char* allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("sampling.", field, " is ", found, ", it must be ", allowed));
}

absl::Status CheckTokenId(int64_t id, uint32_t vocab_size, const char* where) {
  if (id >= 0 && id < vocab_size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(where, " holds token id ", id,
                                                 ", the vocabulary has ids 0 to ", vocab_size - 1));
}

absl::StatusOr<std::vector<TokenId>> Prompt(const v1::GenerateRequest& proto,
                                            const ServingModel& model) {
  switch (proto.prompt_case()) {
    case v1::GenerateRequest::kText: {
      if (proto.text().empty()) return absl::InvalidArgumentError("the prompt is empty");
      tokenizer::EncodeOptions options;
      if (proto.has_add_special_tokens()) options.add_special = proto.add_special_tokens();
      if (proto.has_parse_special_tokens()) options.parse_special = proto.parse_special_tokens();
      return model.tokenizer->Encode(proto.text(), options);
    }
    case v1::GenerateRequest::kTokenIds: {
      const auto& ids = proto.token_ids().ids();
      for (TokenId id : ids) {
        TANDEM_RETURN_IF_ERROR(CheckTokenId(id, model.vocab_size, "the prompt"));
      }
      return std::vector<TokenId>(ids.begin(), ids.end());
    }
    case v1::GenerateRequest::PROMPT_NOT_SET:
      return absl::InvalidArgumentError("the request has no prompt: set text or token_ids");
  }
  return absl::InvalidArgumentError("the request has an unknown kind of prompt");
}

absl::Status CheckDistribution(const v1::SamplingParams& proto, Sampling& out) {
  if (proto.has_temperature()) out.temperature = proto.temperature();
  if (!std::isfinite(out.temperature) || out.temperature < 0) {
    return Bad("temperature", out.temperature, "a number of at least 0");
  }
  if (proto.has_top_p()) out.top_p = proto.top_p();
  if (!(out.top_p > 0 && out.top_p <= 1)) {
    return Bad("top_p", out.top_p, "above 0 and at most 1");
  }
  if (proto.has_min_p()) out.min_p = proto.min_p();
  if (!(out.min_p >= 0 && out.min_p <= 1)) return Bad("min_p", out.min_p, "from 0 to 1");
  const int32_t top_k = proto.has_top_k() ? proto.top_k() : 0;
  if (top_k < -1) return Bad("top_k", top_k, "at least 1, or 0 or -1 for off");
  out.top_k = std::max(top_k, 0);
  return absl::OkStatus();
}

absl::Status CheckLengths(const v1::SamplingParams& proto, size_t prompt_tokens,
                          uint32_t max_model_len, Sampling& out) {
  if (proto.has_max_tokens()) {
    if (proto.max_tokens() < 1) return Bad("max_tokens", proto.max_tokens(), "at least 1");
    out.max_tokens = static_cast<uint32_t>(proto.max_tokens());
  } else {
    // To the end of the context; a prompt that leaves no room is refused by the engine with both
    // numbers.
    out.max_tokens =
        prompt_tokens < max_model_len ? max_model_len - static_cast<uint32_t>(prompt_tokens) : 1;
  }
  const int32_t min_tokens = proto.has_min_tokens() ? proto.min_tokens() : 0;
  if (min_tokens < 0 || static_cast<uint32_t>(min_tokens) > out.max_tokens) {
    return absl::InvalidArgumentError(absl::StrCat("sampling.min_tokens is ", min_tokens,
                                                   ", it must be from 0 to max_tokens, ",
                                                   out.max_tokens));
  }
  out.min_tokens = static_cast<uint32_t>(min_tokens);
  return absl::OkStatus();
}

// `top_n` of the request's own; a small vocabulary has no more than all its ids.
absl::StatusOr<uint32_t> CheckLogprobs(const char* field, int32_t top_n, uint32_t vocab_size) {
  if (top_n < 0 || top_n > kMaxLogprobs) {
    return Bad(field, top_n, absl::StrCat("from 0 to ", kMaxLogprobs).c_str());
  }
  return std::min(static_cast<uint32_t>(top_n), vocab_size);
}

absl::Status CheckLogprobs(const v1::SamplingParams& proto, uint32_t vocab_size, Sampling& out) {
  if (proto.has_logprobs()) {
    TANDEM_ASSIGN_OR_RETURN(out.logprobs, CheckLogprobs("logprobs", proto.logprobs(), vocab_size));
  }
  if (proto.has_prompt_logprobs()) {
    TANDEM_ASSIGN_OR_RETURN(out.prompt_logprobs,
                            CheckLogprobs("prompt_logprobs", proto.prompt_logprobs(), vocab_size));
  }
  return absl::OkStatus();
}

absl::Status CheckStops(const v1::SamplingParams& proto, const ServingModel& model, Sampling& out) {
  if (proto.stop_size() > kMaxStopStrings) {
    return absl::InvalidArgumentError(absl::StrCat("sampling.stop has ", proto.stop_size(),
                                                   " strings, at most ", kMaxStopStrings));
  }
  if (proto.stop_token_ids_size() > kMaxStopTokenIds) {
    return absl::InvalidArgumentError(absl::StrCat("sampling.stop_token_ids has ",
                                                   proto.stop_token_ids_size(), " ids, at most ",
                                                   kMaxStopTokenIds));
  }
  out.stop.assign(proto.stop().begin(), proto.stop().end());
  for (const std::string& stop : out.stop) {
    if (stop.empty()) return absl::InvalidArgumentError("sampling.stop holds an empty string");
  }
  for (TokenId id : proto.stop_token_ids()) {
    TANDEM_RETURN_IF_ERROR(CheckTokenId(id, model.vocab_size, "sampling.stop_token_ids"));
    out.end_ids.push_back(id);
  }
  if (!proto.ignore_eos()) {
    for (TokenId id : model.tokenizer->end_of_generation_ids()) {
      // A vocabulary may be larger than the head, which never draws what is beyond it.
      if (static_cast<uint32_t>(id) < model.vocab_size) out.end_ids.push_back(id);
    }
  }
  std::sort(out.end_ids.begin(), out.end_ids.end());
  out.end_ids.erase(std::unique(out.end_ids.begin(), out.end_ids.end()), out.end_ids.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Request> BuildRequest(const v1::GenerateRequest& proto, const ServingModel& model) {
  Request request;
  if (proto.request_id().size() > kMaxRequestIdBytes) {
    return absl::InvalidArgumentError(absl::StrCat("request_id has ", proto.request_id().size(),
                                                   " bytes, at most ", kMaxRequestIdBytes));
  }
  request.id = proto.request_id().empty()
                   ? absl::StrCat("req-", absl::Hex(Draw(), absl::kZeroPad16))
                   : proto.request_id();
  const v1::SamplingParams& sampling = proto.sampling();
  TANDEM_RETURN_IF_ERROR(CheckDistribution(sampling, request.sampling));
  TANDEM_RETURN_IF_ERROR(CheckLogprobs(sampling, model.vocab_size, request.sampling));
  TANDEM_RETURN_IF_ERROR(CheckStops(sampling, model, request.sampling));
  TANDEM_ASSIGN_OR_RETURN(request.prompt, Prompt(proto, model));
  if (request.prompt.empty()) return absl::InvalidArgumentError("the prompt is empty");
  TANDEM_RETURN_IF_ERROR(
      CheckLengths(sampling, request.prompt.size(), model.max_model_len, request.sampling));
  request.sampling.seed = sampling.has_seed() ? sampling.seed() : Draw();
  return request;
}

}  // namespace tandem::coordinator
