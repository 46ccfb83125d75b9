// Sample's loops over a whole vocabulary, compiled once per instruction set. All sets give the same
// bits: every product and sum is rounded separately, and sums have a fixed order.
#ifndef TANDEM_KERNELS_HOST_VOCABULARY_LOOPS_H_
#define TANDEM_KERNELS_HOST_VOCABULARY_LOOPS_H_

#include <cstddef>
#include <cstdint>

namespace tandem::kernels::host {

// Weights are not negative.
struct VocabularyLoops {
  // The largest of n logits; +inf if one of them is NaN or +inf, -inf if there is no other.
  float (*largest)(const float* logits, size_t n);
  // The index of the first of n values that equals `value`; n if none does.
  size_t (*first)(const float* x, size_t n, float value);
  // weights[i] = exp((logits[i] - largest) / temperature), or 0 if that is below `floor`; both
  // arrays may be the same.
  void (*weigh)(const float* logits, size_t n, float largest, float temperature, float floor,
                float* weights);
  // The sum of the weights that are at least `least`: in kSumLanes lanes, lane i of elements i,
  // i + kSumLanes, ..., those after the last whole step in the first; then of the lanes in order.
  double (*sum)(const float* weights, size_t n, float least);
  // The largest weight of each kMaximaOf, the last one possibly of fewer.
  void (*maxima)(const float* weights, size_t n, float* out);
  // Keys (weight_key.h) of the ids with a weight in [least, most]; how many they are, or, if more
  // than `room`, any number above it. `keys` has room for min(n, room).
  size_t (*gather)(const float* weights, size_t n, float least, float most, size_t room,
                   uint64_t* keys);
  // The weights in [least, most], in order; how many they are. `out` has room for n, and as a whole
  // may be `weights`.
  size_t (*narrow)(const float* weights, size_t n, float least, float most, float* out);
  // Weights below `least` become 0.
  void (*drop)(float* weights, size_t n, float least);
};

inline constexpr size_t kSumLanes = 16, kMaximaOf = 64;

namespace baseline {
extern const VocabularyLoops kVocabularyLoops;
}
// May be called only where the processor has these instructions.
namespace avx2 {
extern const VocabularyLoops kVocabularyLoops;
}
namespace avx512 {
extern const VocabularyLoops kVocabularyLoops;
}

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_VOCABULARY_LOOPS_H_
