#include "common/step/sampling_ranges.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/step/limits.h"

namespace tandem::step {
namespace {

template <typename T>
absl::Status Bad(const char* name, T found, const char* range) {
  return absl::InvalidArgumentError(absl::StrCat(name, " is ", found, ", it must be ", range));
}

// NaN is in no range.
absl::Status CheckRange(const char* name, float found, float least, float most) {
  if (found >= least && found <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", found, ", it must be from ", least, " to ", most));
}

absl::Status CheckWindow(const char* name, int32_t found) {
  if (found >= -1 && found <= static_cast<int32_t>(kMaxPenaltyWindow)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is ", found, ", it must be from 0 to ",
                                                 kMaxPenaltyWindow, ", or -1 for the most"));
}

}  // namespace

// Written so that NaN fails.
absl::Status CheckSamplingRanges(const SamplingFilters& filters) {
  const auto& [temperature, top_p, min_p, top_k, typical_p, xtc_probability, xtc_threshold] =
      filters;
  if (!(temperature >= 0 && std::isfinite(temperature))) {
    return Bad("temperature", temperature, "a number of at least 0");
  }
  if (!(top_p > 0 && top_p <= 1)) return Bad("top_p", top_p, "above 0 and at most 1");
  if (!(min_p >= 0 && min_p <= 1)) return Bad("min_p", min_p, "from 0 to 1");
  if (top_k < 0) return Bad("top_k", top_k, "at least 1, or 0 for off");
  if (!(typical_p > 0 && typical_p <= 1)) {
    return Bad("typical_p", typical_p, "above 0 and at most 1");
  }
  TANDEM_RETURN_IF_ERROR(CheckRange("xtc_probability", xtc_probability, 0, 1));
  return CheckRange("xtc_threshold", xtc_threshold, 0, 1);
}

absl::Status CheckPenaltyRanges(const SamplingPenalties& penalties) {
  TANDEM_RETURN_IF_ERROR(CheckRange("frequency_penalty", penalties.frequency, -2, 2));
  TANDEM_RETURN_IF_ERROR(CheckRange("presence_penalty", penalties.presence, -2, 2));
  TANDEM_RETURN_IF_ERROR(CheckRange("repetition_penalty", penalties.repetition, 0.01f, 100));
  TANDEM_RETURN_IF_ERROR(CheckWindow("penalty_window", penalties.window));
  TANDEM_RETURN_IF_ERROR(CheckRange("dry_multiplier", penalties.dry_multiplier, 0, 100));
  TANDEM_RETURN_IF_ERROR(CheckRange("dry_base", penalties.dry_base, 1, 10));
  if (penalties.dry_allowed_length < 1) {
    return Bad("dry_allowed_length", penalties.dry_allowed_length, "at least 1");
  }
  return CheckWindow("dry_penalty_last_n", penalties.dry_penalty_last_n);
}

absl::Status CheckLogitBias(int32_t id, float bias) {
  return CheckRange(absl::StrCat("logit_bias of id ", id).c_str(), bias, -100, 100);
}

}  // namespace tandem::step
