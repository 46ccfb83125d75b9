#include "coordinator/engine/request_check.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/step/descriptor.h"
#include "common/step/sampling_ranges.h"

namespace tandem::coordinator {
namespace {

absl::Status CheckIds(const char* what, std::span<const TokenId> ids, uint32_t vocab_size) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && static_cast<uint32_t>(ids[i]) < vocab_size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(what, " ", i, " is id ", ids[i], ", the vocabulary has ", vocab_size));
  }
  return absl::OkStatus();
}

// Checks a requested `top_n` against `most`.
absl::Status CheckLogprobs(const char* name, std::optional<uint32_t> top_n, uint32_t most) {
  if (top_n.value_or(0) <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("sampling.", name, " is ", *top_n, ", it must be from 0 to ", most));
}

absl::Status CheckLogprobs(const Sampling& sampling, uint32_t most) {
  TANDEM_RETURN_IF_ERROR(CheckLogprobs("logprobs", sampling.logprobs, most));
  return CheckLogprobs("prompt_logprobs", sampling.prompt_logprobs, most);
}

}  // namespace

absl::Status CheckSampling(const Sampling& sampling) {
  if (absl::Status ranges = step::CheckSamplingRanges(sampling.temperature, sampling.top_p,
                                                      sampling.min_p, sampling.top_k);
      !ranges.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("sampling.", ranges.message()));
  }
  if (sampling.max_tokens == 0) {
    return absl::InvalidArgumentError("sampling.max_tokens is 0, it must be at least 1");
  }
  if (sampling.min_tokens > sampling.max_tokens) {
    return absl::InvalidArgumentError(absl::StrCat("sampling.min_tokens is ", sampling.min_tokens,
                                                   ", it must be from 0 to max_tokens, ",
                                                   sampling.max_tokens));
  }
  return CheckLogprobs(sampling, kMaxTopLogprobs);
}

absl::Status RequestCheck::Check(const Request& request) const {
  if (request.id.empty()) return absl::InvalidArgumentError("the request id is empty");
  if (request.stream == nullptr) return absl::InvalidArgumentError("the request has no stream");
  if (request.prompt.empty()) return absl::InvalidArgumentError("the prompt is empty");
  TANDEM_RETURN_IF_ERROR(CheckSampling(request.sampling));
  TANDEM_RETURN_IF_ERROR(admission_.Check(request.prompt.size(), request.sampling.max_tokens));
  TANDEM_RETURN_IF_ERROR(CheckIds("prompt token", request.prompt, vocab_size_));
  TANDEM_RETURN_IF_ERROR(CheckIds("stop token", request.sampling.end_ids, vocab_size_));
  if (request.sampling.end_ids.size() > step::kMaxBannedPerSeq) {
    return absl::InvalidArgumentError(absl::StrCat(request.sampling.end_ids.size(),
                                                   " ids end the generation, at most ",
                                                   step::kMaxBannedPerSeq, " may"));
  }
  if (!std::ranges::is_sorted(request.sampling.end_ids)) {
    return absl::InvalidArgumentError("end ids must be sorted");
  }
  return CheckLogprobs(request.sampling, vocab_size_);
}

}  // namespace tandem::coordinator
