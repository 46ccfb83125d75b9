#include "coordinator/api/request_builder.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/config/text_form.h"
#include "common/step/descriptor.h"
#include "coordinator/api/token_rules.h"
#include "coordinator/engine/request_check.h"

namespace tandem::coordinator {
namespace {

// Random ids and seeds: unpredictable enough to be unique, never used for secrets.
uint64_t Draw() {
  static Mutex mutex;
  static std::mt19937_64 engine TANDEM_GUARDED_BY(mutex){std::random_device{}()};
  MutexLock lock(mutex);
  return engine();
}

// Keeps the end of a prompt that is too long, as vLLM does: -1 is the longest that leaves room for
// a token.
absl::Status Truncate(const GenerateParams& params, const ServingModel& model,
                      std::vector<TokenId>& prompt) {
  if (!params.truncate_prompt_tokens.has_value()) return absl::OkStatus();
  const int32_t wanted = *params.truncate_prompt_tokens;
  if (wanted < -1 || wanted == 0) {
    return absl::InvalidArgumentError(absl::StrCat("sampling.truncate_prompt_tokens is ", wanted,
                                                   ", it must be at least 1, or -1"));
  }
  const size_t most = wanted == -1 ? model.max_model_len - 1 : static_cast<size_t>(wanted);
  if (prompt.size() > most) {
    prompt.erase(prompt.begin(), prompt.end() - static_cast<ptrdiff_t>(most));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> Unsigned(const char* field, int32_t found, const char* allowed) {
  if (found >= 0) return static_cast<uint32_t>(found);
  return absl::InvalidArgumentError(
      absl::StrCat("sampling.", field, " is ", found, ", it must be ", allowed));
}

absl::Status FillLengths(const GenerateParams& params, size_t prompt_tokens,
                         const ServingModel& model, Sampling& out) {
  const uint32_t max_model_len = model.max_model_len;
  // To the end of the context; the engine rejects a prompt that leaves no room, with both numbers.
  const int32_t room =
      prompt_tokens < max_model_len ? static_cast<int32_t>(max_model_len - prompt_tokens) : 1;
  TANDEM_ASSIGN_OR_RETURN(out.max_tokens,
                          Unsigned("max_tokens", params.max_tokens.value_or(room), "at least 1"));
  if (params.clamp_max_tokens.value_or(model.clamp_max_tokens)) {
    out.max_tokens = std::min(out.max_tokens, static_cast<uint32_t>(room));
  }
  TANDEM_ASSIGN_OR_RETURN(out.min_tokens,
                          Unsigned("min_tokens", params.min_tokens, "from 0 to max_tokens"));
  return absl::OkStatus();
}

absl::Status FillLogprobs(const GenerateParams& params, Sampling& out) {
  constexpr char kAllowed[] = "from 0 to 20";
  static_assert(kMaxTopLogprobs == 20);
  if (params.logprobs.has_value()) {
    TANDEM_ASSIGN_OR_RETURN(out.logprobs, Unsigned("logprobs", *params.logprobs, kAllowed));
  }
  if (params.prompt_logprobs.has_value()) {
    TANDEM_ASSIGN_OR_RETURN(out.prompt_logprobs,
                            Unsigned("prompt_logprobs", *params.prompt_logprobs, kAllowed));
  }
  return absl::OkStatus();
}

absl::Status FillStops(GenerateParams& params, const ServingModel& model, Sampling& out) {
  if (params.stop.size() > kMaxStopStrings) {
    return absl::InvalidArgumentError(absl::StrCat("sampling.stop has ", params.stop.size(),
                                                   " strings, at most ", kMaxStopStrings));
  }
  if (params.stop_token_ids.size() > kMaxStopTokenIds) {
    return absl::InvalidArgumentError(absl::StrCat("sampling.stop_token_ids has ",
                                                   params.stop_token_ids.size(), " ids, at most ",
                                                   kMaxStopTokenIds));
  }
  out.include_stop = params.include_stop;
  out.stop = std::move(params.stop);
  if (std::ranges::count(out.stop, "") > 0) {
    return absl::InvalidArgumentError("sampling.stop holds an empty string");
  }
  out.end_ids = std::move(params.stop_token_ids);
  if (!params.ignore_eos) {
    for (TokenId id : model.tokenizer->end_of_generation_ids()) {
      // A vocabulary may be larger than the head, which never samples ids beyond its size.
      if (static_cast<uint32_t>(id) < model.vocab_size) out.end_ids.push_back(id);
    }
  }
  std::sort(out.end_ids.begin(), out.end_ids.end());
  out.end_ids.erase(std::unique(out.end_ids.begin(), out.end_ids.end()), out.end_ids.end());
  return absl::OkStatus();
}

// A small vocabulary has no more log-probabilities than all its ids.
void ClampLogprobs(std::optional<uint32_t>& top_n, uint32_t vocab_size) {
  if (top_n.has_value()) top_n = std::min(*top_n, vocab_size);
}

// "'a', 'b'": the first ones, so that a message stays short.
std::string SomeNames(const std::vector<std::string>& names) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", config::Quoted(names[i]));
  }
  return names.size() > kMost ? text + ", ..." : text;
}

}  // namespace

absl::StatusOr<Request> NamedRequest(std::string id, std::string cache_salt, int32_t priority) {
  if (id.size() > kMaxRequestIdBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("request_id has ", id.size(), " bytes, at most ", kMaxRequestIdBytes));
  }
  if (std::ranges::any_of(id, absl::ascii_iscntrl)) {
    return absl::InvalidArgumentError("request_id holds a control character");
  }
  if (cache_salt.size() > kMaxCacheSaltBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("cache_salt has ", cache_salt.size(), " bytes, at most ", kMaxCacheSaltBytes));
  }
  Request request;
  request.id =
      id.empty() ? absl::StrCat("req-", absl::Hex(Draw(), absl::kZeroPad16)) : std::move(id);
  request.cache_salt = std::move(cache_salt);
  request.priority = priority;
  return request;
}

absl::Status SetAdapter(const std::string& name, const ServingModel& model, Request& request) {
  if (name.empty()) return absl::OkStatus();
  const auto found = std::ranges::find(model.adapters, name);
  if (found == model.adapters.end()) {
    return absl::NotFoundError(absl::StrCat("adapter ", config::Quoted(name), " is not loaded, ",
                                            model.adapters.empty()
                                                ? "no adapter is (--lora-modules)"
                                                : "only " + SomeNames(model.adapters)));
  }
  request.adapter = static_cast<uint32_t>(found - model.adapters.begin()) + 1;
  return absl::OkStatus();
}

std::string NumberedId(const std::string& first, uint32_t index) {
  return index == 0 ? first : absl::StrCat(first, "#", index);
}

absl::StatusOr<Request> BuildRequest(GenerateParams params, const ServingModel& model) {
  TANDEM_ASSIGN_OR_RETURN(
      Request request,
      NamedRequest(std::move(params.request_id), std::move(params.cache_salt), params.priority));
  TANDEM_RETURN_IF_ERROR(SetAdapter(params.adapter, model, request));
  if (params.n < 1 || params.n > kMaxChoices) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.n is ", params.n, ", it must be from 1 to ", kMaxChoices));
  }
  Sampling& sampling = request.sampling;
  sampling.temperature = params.temperature;
  sampling.top_p = params.top_p;
  sampling.min_p = params.min_p;
  sampling.top_k = params.top_k == -1 ? 0 : params.top_k;
  sampling.typical_p = params.typical_p;
  sampling.xtc_probability = params.xtc_probability;
  sampling.xtc_threshold = params.xtc_threshold;
  sampling.penalties = params.penalties;
  sampling.speculation = params.speculation;
  sampling.seed = params.seed.has_value() ? *params.seed : Draw();
  TANDEM_RETURN_IF_ERROR(FillLogprobs(params, sampling));
  TANDEM_RETURN_IF_ERROR(FillStops(params, model, sampling));
  TANDEM_RETURN_IF_ERROR(FillTokenRules(params, model, sampling));
  TANDEM_ASSIGN_OR_RETURN(request.prompt,
                          IdsOf(std::move(params.prompt), *model.tokenizer, params.encode));
  TANDEM_RETURN_IF_ERROR(Truncate(params, model, request.prompt));
  TANDEM_RETURN_IF_ERROR(FillLengths(params, request.prompt.size(), model, sampling));
  TANDEM_RETURN_IF_ERROR(CheckSampling(sampling));
  if (params.constraint.kind != Constraint::Kind::kNone) {
    // At last: it may take a tenth of a second.
    TANDEM_RETURN_IF_ERROR(CheckBesideForm(sampling));
    TANDEM_ASSIGN_OR_RETURN(sampling.grammar, model.grammars->Of(params.constraint));
  } else if (params.constraint.reasoning.has_value()) {
    return absl::InvalidArgumentError(
        "sampling.reasoning comes before an answer of some form, and there is no constraint");
  }
  ClampLogprobs(sampling.logprobs, model.vocab_size);
  ClampLogprobs(sampling.prompt_logprobs, model.vocab_size);
  return request;
}

Request Continuation(const Request& first, uint32_t index) {
  Request request = first;
  if (index == 0) return request;
  request.id = NumberedId(first.id, index);
  // SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the seeds of all continuations differ, and
  // those of consecutive seeds do too.
  uint64_t seed = first.sampling.seed + index * 0x9e3779b97f4a7c15;
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111eb;
  request.sampling.seed = seed ^ (seed >> 31);
  request.sampling.prompt_logprobs.reset();
  return request;
}

}  // namespace tandem::coordinator
