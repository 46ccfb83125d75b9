#include "kernels/host/heaviest.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "kernels/host/weight_key.h"

namespace tandem::kernels::host {
namespace {

constexpr float kMost = std::numeric_limits<float>::infinity();
constexpr float kLeastPositive = std::numeric_limits<float>::denorm_min();
// So few ids are gathered without narrowing the range of their weights, and down to so few it is
// narrowed.
constexpr size_t kFew = 4096, kFewest = 512;

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

// Some of n weights.
class Sample {
 public:
  Sample(const float* weights, size_t n) : each_(static_cast<double>(n) / kSize) {
    for (size_t i = 0; i < kSize; ++i) weights_[i] = weights[i * n / kSize];
    std::sort(weights_, weights_ + kSize);
  }

  // About how many of the n weights are at least that.
  double CountFrom(float least) const {
    const float* const first = std::lower_bound(weights_, weights_ + kSize, least);
    return each_ * static_cast<double>(weights_ + kSize - first);
  }
  // Two weights in `range` between which the sum from the lightest one very likely reaches
  // `dropped`. Counted from there, as few of the heaviest make up much of the sum.
  std::pair<float, float> Around(double dropped, const Range& range) const {
    int rank = 0;
    for (double sum = 0; rank < kLast; ++rank) {
      sum += each_ * static_cast<double>(weights_[rank]);
      if (sum >= dropped) break;
    }
    return {rank < kError ? range.least : std::max(range.least, weights_[rank - kError]),
            rank + kError > kLast ? range.most : std::min(range.most, weights_[rank + kError])};
  }

 private:
  static constexpr size_t kSize = 256;
  static constexpr int kLast = kSize - 1;
  static constexpr int kError = 20;  // in samples; usually it is below 8

  const double each_;  // so many weights a sample stands for
  float weights_[kSize];
};

// Finds the range in which the sum from above reaches a target, by passes over ever fewer weights.
class Narrowing {
 public:
  // `room` has room for 2 n.
  Narrowing(const VocabularyLoops& loops, double target, size_t n, float* room)
      : loops_(loops), target_(target), rooms_{room, room + n} {}

  // The n weights with the last kept one in `range`. Until few weights are left, or a pass leaves
  // no fewer, as among many equal ones.
  Range Run(const float* weights, size_t n, double total, const Range& range,
            const Sample& sample) {
    Part part = Narrowed({weights, n, total, range}, sample);
    for (size_t before = 0; part.count > kFewest && part.count != before;) {
      before = part.count;
      part = Narrowed(part, Sample(part.weights, part.count));
    }
    return part.range;
  }

 private:
  // Weights among which are all of `range`, their number and sum. Those of the first part that lie
  // below the range are counted by Around, too.
  struct Part {
    const float* weights;
    size_t count;
    double sum;
    Range range;
  };

  // The weights between two guesses; if the last kept one is heavier or lighter than both, all
  // those that are.
  Part Narrowed(const Part& part, const Sample& sample) const {
    const Range& range = part.range;
    const auto [least, most] = sample.Around(part.sum - (target_ - range.above), range);
    const double above = range.above + loops_.sum(part.weights, part.count, NextWeight(most));
    if (above >= target_) return Within(part, {NextWeight(most), range.most, range.above});
    const Part around = Within(part, {least, most, above});
    if (above + around.sum >= target_ || least == range.least) return around;
    return Within(part, {range.least, std::nextafter(least, 0.0f), above + around.sum});
  }

  Part Within(const Part& part, const Range& range) const {
    float* const room = rooms_[part.weights == rooms_[0] ? 1 : 0];
    const size_t count = loops_.narrow(part.weights, part.count, range.least, range.most, room);
    return {room, count, loops_.sum(room, count, 0), range};
  }

  const VocabularyLoops& loops_;
  const double target_;
  float* const rooms_[2];
};

}  // namespace

Heaviest KeepTopP(const VocabularyLoops& loops, const float* weights, uint32_t n, double total,
                  float top_p, uint64_t* keys) {
  const double target = TopPTarget(total, top_p);
  Range range{LeastThatMatters(top_p, total, n), kMost, 0};
  const Sample sample(weights, n);
  size_t count = kFew + 1;
  if (sample.CountFrom(range.least) <= 2 * kFew)
    count = loops.gather(weights, n, range.least, range.most, kFew, keys);
  const bool few = count <= kFew;
  if (!few) {
    Narrowing narrowing(loops, target, n, reinterpret_cast<float*>(keys));
    range = narrowing.Run(weights, n, total, range, sample);
    count = loops.gather(weights, n, range.least, range.most, n, keys);
  }
  // Sums in another order may differ in the last bit, so that nothing is left to add.
  if (count == 0) return {WeightKey(range.least, std::numeric_limits<uint32_t>::max()), 0};
  return {KeyReaching(keys, count, range.above, target, &KeyWeight), few ? count : 0};
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
  const size_t count = loops.gather(weights, n, least, kMost, n, keys);
  if (top_k > count) return count;
  std::nth_element(keys, keys + top_k - 1, keys + count, std::greater<>());
  return top_k;
}

}  // namespace tandem::kernels::host
