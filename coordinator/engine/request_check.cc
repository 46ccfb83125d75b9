#include "coordinator/engine/request_check.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/step/descriptor.h"

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

// Written so that NaN fails.
absl::Status CheckSampling(const Sampling& sampling, uint32_t vocab_size) {
  const uint32_t most_top = std::min(step::kMaxTopLogprobs, vocab_size);
  if (!(sampling.temperature >= 0.0f) || !std::isfinite(sampling.temperature)) {
    return absl::InvalidArgumentError(
        absl::StrCat("temperature must be 0 or more, is ", sampling.temperature));
  }
  if (!(sampling.top_p > 0.0f && sampling.top_p <= 1.0f)) {
    return absl::InvalidArgumentError(absl::StrCat("top_p must be in (0, 1], is ", sampling.top_p));
  }
  if (!(sampling.min_p >= 0.0f && sampling.min_p <= 1.0f)) {
    return absl::InvalidArgumentError(absl::StrCat("min_p must be in [0, 1], is ", sampling.min_p));
  }
  if (sampling.top_k < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("top_k must be 0 (off) or more, is ", sampling.top_k));
  }
  if (sampling.logprobs.value_or(0) > most_top || sampling.prompt_logprobs.value_or(0) > most_top) {
    return absl::InvalidArgumentError(
        absl::StrCat("log-probabilities of the likeliest ",
                     std::max(sampling.logprobs.value_or(0), sampling.prompt_logprobs.value_or(0)),
                     " tokens, at most ", most_top));
  }
  if (!std::ranges::is_sorted(sampling.end_ids)) {
    return absl::InvalidArgumentError("end ids must be sorted");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RequestCheck::Check(const Request& request) const {
  if (request.id.empty()) return absl::InvalidArgumentError("the request id is empty");
  if (request.stream == nullptr) return absl::InvalidArgumentError("the request has no stream");
  TANDEM_RETURN_IF_ERROR(admission_.Check(request.prompt.size(), request.sampling.max_tokens));
  TANDEM_RETURN_IF_ERROR(CheckIds("prompt token", request.prompt, vocab_size_));
  TANDEM_RETURN_IF_ERROR(CheckIds("stop token", request.sampling.end_ids, vocab_size_));
  return CheckSampling(request.sampling, vocab_size_);
}

}  // namespace tandem::coordinator
