#include "kernels/host/sample_filters.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/host/heaviest.h"
#include "kernels/host/logits_row.h"
#include "kernels/host/weight_key.h"

namespace tandem::kernels::host {

void KeepUpTo(const VocabularyLoops& loops, uint64_t last, float* weights, uint32_t vocab) {
  // Of equal weights the lower ids stay.
  const float weight = KeyWeight(last);
  const uint64_t first = std::min<uint64_t>(vocab, uint64_t{KeyId(last)} + 1);
  loops.drop(weights, first, weight);
  loops.drop(weights + first, vocab - first, NextWeight(weight));
}

Heaviest FindHeaviest(const VocabularyLoops& loops, int32_t top_k, float top_p,
                      const float* weights, double total, uint64_t* keys, uint32_t vocab) {
  if (top_k <= 0) {
    if (top_p >= 1.0f) return {kKeepsAll, 0};
    return KeepTopP(loops, weights, vocab, total, top_p, keys);
  }
  const auto most = static_cast<uint32_t>(top_k);
  const size_t n = GatherTopK(loops, weights, vocab, most, keys);
  if (top_p < 1.0f) {
    const double target = double{top_p} * SumOfKeys(keys, n, &KeyWeight);
    return {KeyReaching(keys, n, 0, target, &KeyWeight), n};
  }
  return {n == most ? keys[n - 1] : kKeepsAll, n};
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
  const uint64_t last = KeyReaching(keys, n, 0, double{typical_p} * sum,
                                    [&](uint64_t key) { return weights[KeyId(key)]; });
  for (uint32_t id = 0; id < vocab; ++id) {
    if (weights[id] > 0 && key_of(id) < last) weights[id] = 0;
  }
}

void DropTopChoices(const VocabularyLoops& loops, float threshold, float* weights, uint32_t vocab) {
  const double least = double{threshold} * loops.sum(weights, vocab, 0);
  uint64_t last = UINT64_MAX;
  for (uint32_t id = 0; id < vocab; ++id) {
    if (weights[id] > 0 && weights[id] >= least) last = std::min(last, WeightKey(weights[id], id));
  }
  for (uint32_t id = 0; id < vocab; ++id) {
    if (WeightKey(weights[id], id) > last) weights[id] = 0;
  }
}

}  // namespace tandem::kernels::host
