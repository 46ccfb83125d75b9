#include "kernels/host/sample_filters.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "kernels/host/logits_row.h"

namespace tandem::kernels::host {
namespace {

// An order as one descending integer: larger `bits` first, then lower id. Weights are not negative,
// so their bits order as they do.
uint64_t KeyOf(uint32_t bits, uint32_t id) { return (uint64_t{bits} << 32) | (~id & 0xffffffffu); }
uint64_t Key(float weight, uint32_t id) { return KeyOf(std::bit_cast<uint32_t>(weight), id); }
float KeyWeight(uint64_t key) { return std::bit_cast<float>(static_cast<uint32_t>(key >> 32)); }
uint32_t KeyId(uint64_t key) { return ~static_cast<uint32_t>(key); }

template <typename WeightOf>
double SumOfKeys(const uint64_t* keys, size_t n, WeightOf weight_of) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += weight_of(keys[i]);
  return sum;
}

// The key at which the running sum of weights, in the order of `keys`, reaches `target`:
// quickselect by weight.
template <typename WeightOf>
uint64_t KeyReaching(uint64_t* keys, size_t n, double target, WeightOf weight_of) {
  constexpr size_t kSmall = 64;
  double before = 0;  // sum of weights of keys before keys[0, n)
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

}  // namespace

double SumOfWeights(const float* weights, size_t n) {
  double lanes[4] = {};
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (size_t j = 0; j < 4; ++j) lanes[j] += weights[i + j];
  }
  for (; i < n; ++i) lanes[0] += weights[i];
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

void KeepHeaviest(int32_t top_k, float top_p, float* weights, uint64_t* keys, uint32_t vocab) {
  if (top_k <= 0 && top_p >= 1.0f) return;
  size_t n = 0;
  for (uint32_t id = 0; id < vocab; ++id) {
    if (weights[id] > 0) keys[n++] = Key(weights[id], id);
  }
  uint64_t last = 0;  // the lightest key that is kept
  if (top_k > 0 && static_cast<size_t>(top_k) < n) {
    const auto k = static_cast<size_t>(top_k);
    std::nth_element(keys, keys + k - 1, keys + n, std::greater<>());
    n = k;
    last = keys[k - 1];
  }
  if (top_p < 1.0f) {
    last = KeyReaching(keys, n, double{top_p} * SumOfKeys(keys, n, &KeyWeight), &KeyWeight);
  }
  for (uint32_t id = 0; id < vocab; ++id) {
    if (Key(weights[id], id) < last) weights[id] = 0;
  }
}

void KeepTypical(float typical_p, float* weights, uint64_t* keys, uint32_t vocab) {
  double sum = 0, moment = 0;
  for (uint32_t id = 0; id < vocab; ++id) {
    if (weights[id] == 0) continue;
    sum += weights[id];
    moment += double{weights[id]} * LogOfWeight(weights[id]);
  }
  const auto mean = static_cast<float>(moment / sum);
  // Closest first.
  const auto key_of = [&](uint32_t id) {
    return KeyOf(~std::bit_cast<uint32_t>(std::fabs(LogOfWeight(weights[id]) - mean)), id);
  };
  size_t n = 0;
  for (uint32_t id = 0; id < vocab; ++id) {
    if (weights[id] > 0) keys[n++] = key_of(id);
  }
  const uint64_t last = KeyReaching(keys, n, double{typical_p} * sum,
                                    [&](uint64_t key) { return weights[KeyId(key)]; });
  for (uint32_t id = 0; id < vocab; ++id) {
    if (weights[id] > 0 && key_of(id) < last) weights[id] = 0;
  }
}

void DropTopChoices(float threshold, float* weights, uint32_t vocab) {
  const double least = double{threshold} * SumOfWeights(weights, vocab);
  uint64_t last = UINT64_MAX;
  for (uint32_t id = 0; id < vocab; ++id) {
    if (weights[id] > 0 && weights[id] >= least) last = std::min(last, Key(weights[id], id));
  }
  for (uint32_t id = 0; id < vocab; ++id) {
    if (Key(weights[id], id) > last) weights[id] = 0;
  }
}

}  // namespace tandem::kernels::host
