#include "coordinator/scheduler/step_time_model.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace tandem::coordinator {
namespace {

// Of coordinate descent, which begins where the last fit has ended.
constexpr int kSweeps = 50;

// Of so many steps with prefill one may take longer than predicted.
constexpr size_t kStepsPerLate = 10;

}  // namespace

StepLoad StepLoad::Of(const Plan& plan) {
  StepLoad load;
  for (const PlanEntry& entry : plan.entries) {
    if (entry.phase == Phase::kDecode) {
      for (uint32_t i = 0; i < entry.num_tokens; ++i) load.AddDecode(entry.begin + i);
    } else {
      load.AddPrefill(entry.begin, entry.num_tokens);
    }
  }
  return load;
}

void StepLoad::AddDecode(uint32_t position) {
  ++decode_rows;
  decode_positions += uint64_t{position} + 1;
}

void StepLoad::AddPrefill(uint32_t begin, uint32_t num_tokens) {
  prefill_tokens += num_tokens;
  const uint64_t n = num_tokens;
  prefill_positions += n * begin + n * (n + 1) / 2;
}

StepTimeModel::Parts StepTimeModel::PartsOf(const StepLoad& load) {
  return {1, static_cast<double>(load.decode_rows), static_cast<double>(load.decode_positions),
          static_cast<double>(load.prefill_tokens), static_cast<double>(load.prefill_positions)};
}

void StepTimeModel::Learn(const StepLoad& load, Duration time) {
  const double time_us = std::chrono::duration<double, std::micro>(time).count();
  Sample sample{.parts = PartsOf(load), .prefill_tokens = load.prefill_tokens};
  for (double& part : sample.parts) part /= time_us;
  std::deque<Sample>& window = load.prefill_tokens > 0 ? with_prefill_ : without_prefill_;
  window.push_back(sample);
  if (window.size() > kWindow) window.pop_front();
  Fit();
  FitSpread();
}

void StepTimeModel::Fit() {
  // The normal equations of: parts * costs = 1 for every sample.
  std::array<Parts, kParts> products{};
  Parts sums{};
  for (const auto* window : {&with_prefill_, &without_prefill_}) {
    for (const Sample& sample : *window) {
      for (size_t i = 0; i < kParts; ++i) {
        sums[i] += sample.parts[i];
        for (size_t j = 0; j < kParts; ++j) products[i][j] += sample.parts[i] * sample.parts[j];
      }
    }
  }
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (size_t i = 0; i < kParts; ++i) {
      if (products[i][i] == 0) continue;
      const double others =
          std::inner_product(products[i].begin(), products[i].end(), costs_us_.begin(), 0.0) -
          products[i][i] * costs_us_[i];
      costs_us_[i] = std::max(0.0, (sums[i] - others) / products[i][i]);
    }
  }
}

void StepTimeModel::FitSpread() {
  std::vector<double> fitted;  // by the time
  for (const Sample& sample : with_prefill_) fitted.push_back(TimeOf(sample.parts));
  spread_ = 1;
  if (fitted.size() < kStepsPerLate) return;  // the first step is slow: it alone says nothing
  const auto late = fitted.begin() + static_cast<std::ptrdiff_t>(fitted.size() / kStepsPerLate);
  std::ranges::nth_element(fitted, late);
  if (*late > 0) spread_ = std::max(1.0, 1 / *late);
}

double StepTimeModel::TimeOf(const Parts& parts) const {
  return std::inner_product(parts.begin(), parts.end(), costs_us_.begin(), 0.0);
}

Duration StepTimeModel::Predict(const StepLoad& load) const {
  const double time_us = TimeOf(PartsOf(load)) * (load.prefill_tokens > 0 ? spread_ : 1);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::micro>(time_us));
}

uint64_t StepTimeModel::most_prefill_tokens() const {
  uint64_t most = 0;
  for (const Sample& sample : with_prefill_) most = std::max(most, sample.prefill_tokens);
  return most;
}

}  // namespace tandem::coordinator
