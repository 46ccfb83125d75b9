// Which id of a vocabulary is the last one that top_k and top_p keep, without sorting it.
#ifndef TANDEM_KERNELS_HOST_HEAVIEST_H_
#define TANDEM_KERNELS_HOST_HEAVIEST_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

#include "kernels/host/vocabulary_loops.h"

namespace tandem::kernels::host {

// The least weight above this one.
inline float NextWeight(float weight) {
  return std::nextafter(weight, std::numeric_limits<float>::infinity());
}

template <typename WeightOf>
double SumOfKeys(const uint64_t* keys, size_t n, WeightOf weight_of) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += weight_of(keys[i]);
  return sum;
}

// The key at which the running sum of weights, `before` to begin with and then in descending order
// of keys, reaches `target`; the last one if none does. Quickselect by weight. REQUIRES: n > 0.
template <typename WeightOf>
uint64_t KeyReaching(uint64_t* keys, size_t n, double before, double target, WeightOf weight_of) {
  constexpr size_t kSmall = 64;
  while (n > kSmall) {
    const uint64_t a = keys[0], b = keys[n / 2], c = keys[n - 1];
    // Keys are distinct, so a median of three leaves at least one on either side.
    const uint64_t pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
    uint64_t* middle = std::partition(keys, keys + n, [&](uint64_t key) { return key >= pivot; });
    const auto first = static_cast<size_t>(middle - keys);
    const double sum = SumOfKeys(keys, first, weight_of);
    if (before + sum >= target) {
      n = first;
    } else {
      before += sum;
      keys = middle;
      n -= first;
    }
  }
  std::sort(keys, keys + n, std::greater<>());
  for (size_t i = 0; i < n; ++i) {
    before += weight_of(keys[i]);
    if (before >= target) return keys[i];
  }
  return keys[n - 1];
}

// What top_k or top_p keeps: ids up to a last one, heaviest first.
struct Heaviest {
  uint64_t last;    // its key (weight_key.h)
  size_t gathered;  // so many keys are in `keys`, all kept ones among them; or 0
};

// What top_p keeps is the fewest ids, heaviest first, whose sum reaches this. Positive, so that one
// id at least is kept.
inline double TopPTarget(double total, float top_p) {
  return std::max(double{top_p} * total, std::numeric_limits<double>::min());
}

// The ids, heaviest first, up to the one with which their share of the sum of weights, `total`,
// reaches `top_p` < 1. `keys` has room for n. REQUIRES: some weight is positive.
Heaviest KeepTopP(const VocabularyLoops& loops, const float* weights, uint32_t n, double total,
                  float top_p, uint64_t* keys);

// Gathers the keys of the `top_k` heaviest ids, the last one of them at the end, or of all with a
// positive weight if there are fewer. Returns how many.
size_t GatherTopK(const VocabularyLoops& loops, const float* weights, uint32_t n, uint32_t top_k,
                  uint64_t* keys);

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_HEAVIEST_H_
