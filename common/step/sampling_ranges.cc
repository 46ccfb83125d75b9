#include "common/step/sampling_ranges.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace tandem::step {
namespace {

template <typename T>
absl::Status Bad(const char* name, T found, const char* range) {
  return absl::InvalidArgumentError(absl::StrCat(name, " is ", found, ", it must be ", range));
}

}  // namespace

// Written so that NaN fails.
absl::Status CheckSamplingRanges(float temperature, float top_p, float min_p, int32_t top_k) {
  if (!(temperature >= 0 && std::isfinite(temperature))) {
    return Bad("temperature", temperature, "a number of at least 0");
  }
  if (!(top_p > 0 && top_p <= 1)) return Bad("top_p", top_p, "above 0 and at most 1");
  if (!(min_p >= 0 && min_p <= 1)) return Bad("min_p", min_p, "from 0 to 1");
  if (top_k < 0) return Bad("top_k", top_k, "at least 1, or 0 for off");
  return absl::OkStatus();
}

}  // namespace tandem::step
