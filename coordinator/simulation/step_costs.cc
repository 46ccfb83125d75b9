#include "coordinator/simulation/step_costs.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace tandem::coordinator {
namespace {

constexpr double kMostUs = 1e12;  // of a step: what exceeds it exceeds every timeout

// Straight lines between the times, and on with the last two's slope, which is not below 0. Before
// the first it is the first.
double At(const MeasuredTimes& times, double size) {
  const auto after = std::ranges::lower_bound(times.sizes, size);
  if (after == times.sizes.begin()) return times.us.front();
  if (times.sizes.size() == 1) return times.us.front();
  const bool beyond = after == times.sizes.end();
  const size_t right =
      beyond ? times.sizes.size() - 1 : static_cast<size_t>(after - times.sizes.begin());
  const size_t left = right - 1;
  double slope = (times.us[right] - times.us[left]) / (times.sizes[right] - times.sizes[left]);
  if (beyond) slope = std::max(slope, 0.0);
  return times.us[beyond ? right : left] + slope * (size - times.sizes[beyond ? right : left]);
}

absl::Status Check(const char* what, const MeasuredTimes& times) {
  const auto wrong = [&](const auto&... text) {
    return absl::InvalidArgumentError(absl::StrCat(what, text...));
  };
  if (times.sizes.empty() || times.sizes.size() != times.us.size()) {
    return wrong(": needed a time for each size and one at least, found ", times.us.size(),
                 " times and ", times.sizes.size(), " sizes");
  }
  for (size_t i = 0; i < times.sizes.size(); ++i) {
    if (times.sizes[i] <= (i == 0 ? 0 : times.sizes[i - 1])) {
      return wrong(": needed ascending sizes from 1 on, found ", times.sizes[i],
                   i == 0 ? " first" : absl::StrCat(" after ", times.sizes[i - 1]));
    }
    if (!std::isfinite(times.us[i]) || times.us[i] <= 0) {
      return wrong(": needed times above 0, found ", times.us[i], " of size ", times.sizes[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status Check(const char* what, double value) {
  if (std::isfinite(value) && value >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": needed 0 or more, found ", value));
}

}  // namespace

absl::Status StepMeasurements::Validate() const {
  TANDEM_RETURN_IF_ERROR(Check("prefill-us", prefill));
  TANDEM_RETURN_IF_ERROR(Check("decode-us", decode));
  TANDEM_RETURN_IF_ERROR(Check("decode-positions", decode_positions));
  TANDEM_RETURN_IF_ERROR(Check("decode-position-ns", decode_position_ns));
  return Check("prefill-position-ns", prefill_position_ns);
}

StepCosts::StepCosts(const StepMeasurements& measured)
    : decode_position_us_(measured.decode_position_ns / 1000),
      prefill_position_us_(measured.prefill_position_ns / 1000),
      prefill_(measured.prefill),
      decode_(measured.decode) {
  for (size_t i = 0; i < prefill_.us.size(); ++i) {
    const double attention = prefill_position_us_ * PromptPositions(prefill_.sizes[i]);
    prefill_.us[i] = std::max(0.0, prefill_.us[i] - attention);
  }
  for (size_t i = 0; i < decode_.us.size(); ++i) {
    const double attention = decode_position_us_ * measured.decode_positions * decode_.sizes[i];
    decode_.us[i] = std::max(0.0, decode_.us[i] - attention);
  }
}

double StepCosts::HeadUs(uint32_t num_samples) const {
  if (num_samples <= 1) return 0;
  return std::max(0.0, At(decode_, num_samples) - At(prefill_, num_samples));
}

Duration StepCosts::Of(const StepLoad& load, uint32_t num_samples) const {
  const auto decoded = static_cast<double>(load.decode_rows);
  const auto prefilled = static_cast<double>(load.prefill_tokens);
  const double attention = decode_position_us_ * static_cast<double>(load.decode_positions) +
                           prefill_position_us_ * static_cast<double>(load.prefill_positions);
  const double products = load.prefill_tokens == 0
                              ? At(decode_, decoded)
                              : At(prefill_, decoded + prefilled) + HeadUs(num_samples);
  const double us = std::clamp(products + attention, 1.0, kMostUs);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::micro>(us));
}

}  // namespace tandem::coordinator
