#include "kernels/host/heaviest.h"

#include <bit>
#include <limits>

#include "kernels/host/weight_key.h"

namespace tandem::kernels::host {
namespace {

constexpr float kMost = std::numeric_limits<float>::infinity();
constexpr float kLeastPositive = std::numeric_limits<float>::denorm_min();
// So few ids are gathered without narrowing the range of their weights.
constexpr size_t kFew = 4096;

// Weights in [least, most], beside which those above `most` sum up to `above`.
struct Range {
  float least;
  float most;
  double above;
};

// A weight that the last kept id has at least: all ids below it together have less than the share
// that top_p drops. The factor makes up for roundings.
float LeastThatMatters(float top_p, double total, uint32_t n) {
  const double dropped = 1 - std::max(0.0, static_cast<double>(top_p));
  return std::max(kLeastPositive, static_cast<float>(dropped * total / n * (1 - 1e-6)));
}

// Sums of weights by size: 16 parts of every power of two down from 1, then all below.
class Histogram {
 public:
  Histogram(const float* weights, uint32_t n) {
    // Neighbours are often of one part, so four tables take turns.
    double tables[4][kParts] = {};
    uint32_t id = 0;
    for (; id + 4 <= n; id += 4) {
      for (uint32_t j = 0; j < 4; ++j) tables[j][PartOf(weights[id + j])] += weights[id + j];
    }
    for (; id < n; ++id) tables[0][PartOf(weights[id])] += weights[id];
    for (uint32_t part = 0; part < kParts; ++part)
      sums_[part] = (tables[0][part] + tables[1][part]) + (tables[2][part] + tables[3][part]);
  }

  // The part in which the sum from above reaches `target`; the last one if none does.
  Range Reaching(double target) const {
    Range range{0, 0, 0};
    uint32_t part = 0;
    for (; part + 1 < kParts && (sums_[part] == 0 || range.above + sums_[part] < target); ++part)
      range.above += sums_[part];
    range.least = part + 1 < kParts ? FromBits(kOne - ((part + 1) << kShift) + 1) : kLeastPositive;
    range.most = part > 0 ? FromBits(kOne - (part << kShift)) : kMost;
    return range;
  }

 private:
  static constexpr uint32_t kParts = 512, kShift = 19, kOne = 0x3f800000;  // the bits of 1

  static float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }
  static uint32_t PartOf(float weight) {
    const uint32_t bits = std::bit_cast<uint32_t>(weight);
    return bits >= kOne ? 0 : std::min(kParts - 1, (kOne - bits) >> kShift);
  }

  double sums_[kParts];
};

}  // namespace

uint64_t LastOfTopP(const VocabularyLoops& loops, const float* weights, uint32_t n, float top_p,
                    uint64_t* keys) {
  const double total = loops.sum(weights, n, 0);
  const double target = double{top_p} * total;
  Range range{LeastThatMatters(top_p, total, n), kMost, 0};
  if (loops.count(weights, n, range.least) > kFew) range = Histogram(weights, n).Reaching(target);
  const size_t count = loops.gather(weights, n, range.least, range.most, keys);
  // Sums in another order may differ in the last bit, so that nothing is left to add.
  if (count == 0) return WeightKey(range.least, std::numeric_limits<uint32_t>::max());
  return KeyReaching(keys, count, range.above, target, &KeyWeight);
}

size_t GatherTopK(const VocabularyLoops& loops, const float* weights, uint32_t n, uint32_t top_k,
                  uint64_t* keys) {
  // If top_k parts of the vocabulary have weights of at least this, there are top_k such ids.
  float least = kLeastPositive;
  const size_t parts = (size_t{n} + kMaximaOf - 1) / kMaximaOf;
  if (top_k < parts) {
    float* const maxima = reinterpret_cast<float*>(keys);
    loops.maxima(weights, n, maxima);
    std::nth_element(maxima, maxima + top_k - 1, maxima + parts, std::greater<>());
    least = std::max(least, maxima[top_k - 1]);
  }
  const size_t count = loops.gather(weights, n, least, kMost, keys);
  if (top_k > count) return count;
  std::nth_element(keys, keys + top_k - 1, keys + count, std::greater<>());
  return top_k;
}

}  // namespace tandem::kernels::host
