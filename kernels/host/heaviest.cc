#include "kernels/host/heaviest.h"

#include <algorithm>
#include <cmath>
#include <functional>
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

// Finds the range in which the sum from above reaches a target, by passes over ever fewer weights.
class Narrowing {
 public:
  // `kept` has room for n, and `range` holds the last kept weight.
  Narrowing(const VocabularyLoops& loops, const float* weights, size_t n, Range range,
            double target, float* kept)
      : loops_(loops), range_(range), target_(target), kept_(kept) {
    count_ = loops_.narrow(weights, n, range.least, range.most, kept_);
    sum_ = loops_.sum(kept_, count_, 0);
  }

  // Until few weights are left, or a pass leaves no fewer, as among many equal ones. The first
  // pivot is a guess of the last kept weight, which then is near an end of what is left; the next
  // ones are a little farther from that end than the guess.
  Range Run() {
    int beyond = 0;
    for (size_t before = 0; count_ > kFew && count_ != before;) {
      before = count_;
      const float pivot = Pivot(beyond);
      const double above = loops_.sum(kept_, count_, pivot);
      const bool reached = range_.above + above >= target_;
      if (reached) {
        range_.least = pivot;
        sum_ = above;
      } else {
        range_.above += above;
        range_.most = std::nextafter(pivot, 0.0f);
        sum_ -= above;
      }
      beyond = reached ? kBeyond : -kBeyond;
      count_ = loops_.narrow(kept_, count_, range_.least, range_.most, kept_);
    }
    return range_;
  }

 private:
  static constexpr size_t kSamples = 256;
  static constexpr int kBeyond = 6;  // samples, twice their usual error

  // The weight below which the sum should be what is not kept, by a sample; `beyond` ranks heavier.
  // Counted from the lightest, as few of the heaviest make up much of the sum.
  float Pivot(int beyond) const {
    float samples[kSamples];
    for (size_t i = 0; i < kSamples; ++i) samples[i] = kept_[i * count_ / kSamples];
    std::sort(samples, samples + kSamples);
    const double each = static_cast<double>(count_) / kSamples;
    const double dropped = sum_ - (target_ - range_.above);
    int rank = 0;
    for (double sum = 0; rank + 1 < static_cast<int>(kSamples); ++rank) {
      sum += each * static_cast<double>(samples[rank]);
      if (sum >= dropped) break;
    }
    return samples[std::clamp(rank + beyond, 0, static_cast<int>(kSamples) - 1)];
  }

  const VocabularyLoops& loops_;
  Range range_;
  const double target_;
  float* const kept_;
  size_t count_;
  double sum_;  // of what is kept
};

}  // namespace

Heaviest KeepTopP(const VocabularyLoops& loops, const float* weights, uint32_t n, double total,
                  float top_p, uint64_t* keys) {
  const double target = double{top_p} * total;
  Range range{LeastThatMatters(top_p, total, n), kMost, 0};
  size_t count = loops.gather(weights, n, range.least, range.most, kFew, keys);
  const bool few = count <= kFew;
  if (!few) {
    range = Narrowing(loops, weights, n, range, target, reinterpret_cast<float*>(keys)).Run();
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
