// Median: of the measurements of all repetitions.
#ifndef TANDEM_CLIENT_BENCH_MEDIAN_H_
#define TANDEM_CLIENT_BENCH_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tandem::client {

// REQUIRES: `values` is not empty.
template <typename T>
T Median(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_BENCH_MEDIAN_H_
