// Histogram: how many times of something fell into each of some ranges, and their sum.
//
// Thread-safe: Record neither locks nor allocates. A snapshot taken meanwhile may have a time in
// its counts and not in its sum.
#ifndef TANDEM_COORDINATOR_OBSERVE_HISTOGRAM_H_
#define TANDEM_COORDINATOR_OBSERVE_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/clock.h"

namespace tandem::coordinator {

struct HistogramView {
  std::span<const double> bounds_s;  // upper bounds of the ranges but the last, ascending, seconds
  std::vector<uint64_t> counts;      // of each range: one more than bounds
  double sum_s = 0;

  uint64_t total() const;
};

class Histogram {
 public:
  static constexpr size_t kMaxBounds = 24;

  // `bounds_s` must outlive it; at most kMaxBounds.
  explicit Histogram(std::span<const double> bounds_s);

  // `times` times of the same length.
  void Record(Duration length, uint64_t times = 1);
  HistogramView View() const;

 private:
  const std::span<const double> bounds_s_;
  std::array<std::atomic<uint64_t>, kMaxBounds + 1> counts_{};
  std::atomic<int64_t> sum_ns_{0};
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_OBSERVE_HISTOGRAM_H_
