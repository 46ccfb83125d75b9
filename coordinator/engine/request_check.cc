#include "coordinator/engine/request_check.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/step/descriptor.h"
#include "common/step/limits.h"
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

// Ids of biases, and of what may not be generated, and their numbers.
absl::Status CheckAdjustments(const Sampling& sampling, uint32_t vocab_size) {
  std::vector<TokenId> biased;
  for (const auto& [id, bias] : sampling.logit_bias) biased.push_back(id);
  TANDEM_RETURN_IF_ERROR(CheckIds("logit_bias entry", biased, vocab_size));
  if (biased.size() > step::kMaxLogitBiases) {
    return absl::InvalidArgumentError(absl::StrCat("sampling.logit_bias has ", biased.size(),
                                                   " entries, at most ", step::kMaxLogitBiases));
  }
  if (std::ranges::adjacent_find(biased, std::greater_equal<>()) != biased.end()) {
    return absl::InvalidArgumentError("biased ids must rise");
  }
  if (sampling.banned_sequences.size() > step::kMaxBannedSequences) {
    return absl::InvalidArgumentError(absl::StrCat(sampling.banned_sequences.size(),
                                                   " sequences of ids are banned, at most ",
                                                   step::kMaxBannedSequences, " may be"));
  }
  for (const std::vector<TokenId>& sequence : sampling.banned_sequences) {
    if (sequence.empty()) return absl::InvalidArgumentError("a banned sequence of ids is empty");
    TANDEM_RETURN_IF_ERROR(CheckIds("banned token", sequence, vocab_size));
  }
  if (!std::ranges::is_sorted(sampling.dry_breakers)) {
    return absl::InvalidArgumentError("sequence breakers must be sorted");
  }
  return absl::OkStatus();
}

absl::Status CheckLogprobs(const Sampling& sampling, uint32_t most) {
  TANDEM_RETURN_IF_ERROR(CheckLogprobs("logprobs", sampling.logprobs, most));
  return CheckLogprobs("prompt_logprobs", sampling.prompt_logprobs, most);
}

}  // namespace

absl::Status CheckBesideForm(const Sampling& sampling) {
  if (sampling.min_tokens == 0 && sampling.banned_sequences.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "sampling.min_tokens and bad_words are not supported beside a constraint");
}

absl::Status CheckSampling(const Sampling& sampling) {
  const step::SamplingFilters filters{.temperature = sampling.temperature,
                                      .top_p = sampling.top_p,
                                      .min_p = sampling.min_p,
                                      .top_k = sampling.top_k,
                                      .typical_p = sampling.typical_p,
                                      .xtc_probability = sampling.xtc_probability,
                                      .xtc_threshold = sampling.xtc_threshold};
  absl::Status ranges = step::CheckSamplingRanges(filters);
  if (ranges.ok()) ranges = step::CheckPenaltyRanges(sampling.penalties);
  for (const auto& [id, bias] : sampling.logit_bias) {
    if (ranges.ok()) ranges = step::CheckLogitBias(id, bias);
  }
  if (!ranges.ok()) {
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
  if (sampling.grammar != nullptr) TANDEM_RETURN_IF_ERROR(CheckBesideForm(sampling));
  return CheckLogprobs(sampling, kMaxTopLogprobs);
}

// Of a request that generates nothing.
absl::Status RequestCheck::CheckWithoutTokens(const Request& request) const {
  if (request.pooling.has_value() && !request.targets.empty()) {
    return absl::InvalidArgumentError("a request scores ids or embeds its prompt, not both");
  }
  if (request.pooling.has_value() && !pools_) {
    return absl::InvalidArgumentError(
        "this server gives no embeddings: no vector fits into a step's result "
        "(--max-result-bytes)");
  }
  if (request.targets.size() > request.prompt.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("nothing comes before the first of the ids to score, ", request.targets.size(),
                     " with a prompt of ", request.prompt.size(), " tokens: one is needed"));
  }
  if (request.sampling.max_tokens > 0) {
    return absl::InvalidArgumentError("a request scores, embeds or generates: one of them");
  }
  TANDEM_RETURN_IF_ERROR(CheckLogprobs(request.sampling, kMaxTopLogprobs));
  return CheckIds("token to score", request.targets, vocab_size_);
}

absl::Status RequestCheck::Check(const Request& request) const {
  if (request.id.empty()) return absl::InvalidArgumentError("the request id is empty");
  if (request.stream == nullptr) return absl::InvalidArgumentError("the request has no stream");
  if (request.prompt.empty()) return absl::InvalidArgumentError("the prompt is empty");
  if (request.priority < -kMostPriority || request.priority > kMostPriority) {
    return absl::InvalidArgumentError(absl::StrCat("priority is ", request.priority,
                                                   ", it must be from ", -kMostPriority, " to ",
                                                   kMostPriority));
  }
  if (request.adapter > num_adapters_) {
    return absl::InvalidArgumentError(
        absl::StrCat("adapter is number ", request.adapter, ", there are ", num_adapters_));
  }
  if (request.generates()) {
    TANDEM_RETURN_IF_ERROR(CheckSampling(request.sampling));
  } else {
    TANDEM_RETURN_IF_ERROR(CheckWithoutTokens(request));
  }
  TANDEM_RETURN_IF_ERROR(admission_.Check(request.prompt.size(), request.sampling.max_tokens));
  TANDEM_RETURN_IF_ERROR(CheckIds("prompt token", request.prompt, vocab_size_));
  TANDEM_RETURN_IF_ERROR(CheckIds("stop token", request.sampling.end_ids, vocab_size_));
  if (request.sampling.end_ids.size() > step::kMaxEndIds) {
    return absl::InvalidArgumentError(absl::StrCat(request.sampling.end_ids.size(),
                                                   " ids end the generation, at most ",
                                                   step::kMaxEndIds, " may"));
  }
  if (!std::ranges::is_sorted(request.sampling.end_ids)) {
    return absl::InvalidArgumentError("end ids must be sorted");
  }
  TANDEM_RETURN_IF_ERROR(CheckAdjustments(request.sampling, vocab_size_));
  const auto& grammar = request.sampling.grammar;
  if (grammar != nullptr && grammar->first().allowed->size() != step::MaskWords(vocab_size_)) {
    return absl::InvalidArgumentError("the form of the answer is over another vocabulary");
  }
  return CheckLogprobs(request.sampling, vocab_size_);
}

}  // namespace tandem::coordinator
