#include "coordinator/observe/histogram.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "common/base/check.h"

namespace tandem::coordinator {

uint64_t HistogramView::total() const {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

Histogram::Histogram(std::span<const double> bounds_s) : bounds_s_(bounds_s) {
  TANDEM_CHECK(bounds_s.size() <= kMaxBounds);
}

void Histogram::Record(Duration length, uint64_t times) {
  const double seconds = std::chrono::duration<double>(length).count();
  const auto range = std::ranges::lower_bound(bounds_s_, seconds) - bounds_s_.begin();
  counts_[static_cast<size_t>(range)].fetch_add(times, std::memory_order_relaxed);
  sum_ns_.fetch_add(length.count() * static_cast<int64_t>(times), std::memory_order_relaxed);
}

HistogramView Histogram::View() const {
  HistogramView view{.bounds_s = bounds_s_, .counts = {}};
  for (size_t range = 0; range <= bounds_s_.size(); ++range) {
    view.counts.push_back(counts_[range].load(std::memory_order_relaxed));
  }
  view.sum_s = static_cast<double>(sum_ns_.load(std::memory_order_relaxed)) / 1e9;
  return view;
}

}  // namespace tandem::coordinator
