// In vectors of the compiler's, as wide as the instruction set has them.
#include "kernels/host/vocabulary_loops.h"

#include <immintrin.h>

#include "kernels/host/logits_row.h"
#include "kernels/host/weight_key.h"

namespace tandem::kernels::host::TANDEM_LOOPS_ISA {
namespace {

#if defined(__AVX512F__)
constexpr size_t kBytes = 64;
#elif defined(__AVX2__)
constexpr size_t kBytes = 32;
#else
constexpr size_t kBytes = 16;
#endif
constexpr size_t kLanes = kBytes / sizeof(float);
using Floats = float __attribute__((vector_size(kBytes)));
using Ints = int32_t __attribute__((vector_size(kBytes)));
using Doubles = double __attribute__((vector_size(kBytes)));
using HalfFloats = float __attribute__((vector_size(kBytes / 2)));

// Elements of one step of a sum, whatever the width of a vector.
constexpr size_t kStep = 16;

template <typename Vector>
Vector LoadAt(const float* x) {
  Vector v;
  __builtin_memcpy(&v, x, sizeof(v));
  return v;
}

// Bit i: whether lane i of a comparison is true.
uint32_t BitsOf(Ints comparison) {
#if defined(__AVX512F__)
  return _mm512_movepi32_mask(reinterpret_cast<__m512i>(comparison));
#elif defined(__AVX2__)
  return static_cast<uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(comparison)));
#else
  return static_cast<uint32_t>(_mm_movemask_ps(reinterpret_cast<__m128>(comparison)));
#endif
}

float LargestUsable(const float* logits, size_t n) {
  constexpr float kInfinity = __builtin_inff();
  const auto usable = [](float x) { return x < kInfinity ? x : kInfinity; };
  Floats lanes = Floats{} - kInfinity;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Floats x = LoadAt<Floats>(logits + i);
    const Floats limit = Floats{} + kInfinity;
    const Floats below = x < limit ? x : limit;  // NaN is not
    lanes = lanes < below ? below : lanes;
  }
  float largest = -kInfinity;
  for (; i < n; ++i) largest = largest < usable(logits[i]) ? usable(logits[i]) : largest;
  for (size_t j = 0; j < kLanes; ++j) largest = largest < lanes[j] ? lanes[j] : largest;
  return largest;
}

// Divides, unless that changes nothing.
template <bool kDivide>
void WeighBy(const float* logits, size_t n, float largest, float temperature, float floor,
             float* weights) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) {
    const float below = logits[i] - largest;
    const float weight = ExpOfNegative(kDivide ? below / temperature : below);
    weights[i] = weight >= floor ? weight : 0.0f;
  }
}

void Weigh(const float* logits, size_t n, float largest, float temperature, float floor,
           float* weights) {
  if (temperature == 1.0f) {
    WeighBy<false>(logits, n, largest, temperature, floor, weights);
  } else {
    WeighBy<true>(logits, n, largest, temperature, floor, weights);
  }
}

Doubles Widen(HalfFloats x) {
#if defined(__AVX512F__)
  return _mm512_cvtps_pd(x);  // gcc 12 takes the general form apart
#else
  return __builtin_convertvector(x, Doubles);
#endif
}

// Lane i of kStep sums elements i, i + kStep, ...
double Sum(const float* weights, size_t n, float least) {
  constexpr size_t kDoubles = kLanes / 2, kVecs = kStep / kDoubles;
  const HalfFloats limit = HalfFloats{} + least;
  Doubles lanes[kVecs] = {};
  size_t i = 0;
  for (; i + kStep <= n; i += kStep) {
#pragma GCC unroll 8
    for (size_t v = 0; v < kVecs; ++v) {
      const HalfFloats x = LoadAt<HalfFloats>(weights + i + v * kDoubles);
      lanes[v] += Widen(x >= limit ? x : HalfFloats{});
    }
  }
  for (; i < n; ++i) lanes[0][0] += static_cast<double>(weights[i] >= least ? weights[i] : 0.0f);
  double sum = 0;
  for (const Doubles& vec : lanes) {
    for (size_t j = 0; j < kDoubles; ++j) sum += vec[j];
  }
  return sum;
}

size_t Count(const float* weights, size_t n, float least) {
  const Floats limit = Floats{} + least;
  Ints counts = {};  // true is -1
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) counts -= LoadAt<Floats>(weights + i) >= limit;
  size_t count = 0;
  for (; i < n; ++i) count += weights[i] >= least ? 1 : 0;
  for (size_t j = 0; j < kLanes; ++j) count += static_cast<uint32_t>(counts[j]);
  return count;
}

void Maxima(const float* weights, size_t n, float* out) {
  for (size_t begin = 0; begin < n; begin += kMaximaOf, ++out) {
    const size_t end = n - begin < kMaximaOf ? n : begin + kMaximaOf;
    Floats lanes = {};
    size_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      const Floats x = LoadAt<Floats>(weights + i);
      lanes = lanes < x ? x : lanes;
    }
    float largest = 0;
    for (; i < end; ++i) largest = largest < weights[i] ? weights[i] : largest;
    for (size_t j = 0; j < kLanes; ++j) largest = largest < lanes[j] ? lanes[j] : largest;
    *out = largest;
  }
}

size_t Gather(const float* weights, size_t n, float least, float most, uint64_t* keys) {
  size_t count = 0;
  const auto append = [&](size_t id) {
    keys[count++] = WeightKey(weights[id], static_cast<uint32_t>(id));
  };
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Floats x = LoadAt<Floats>(weights + i);
    for (uint32_t left = BitsOf((x >= Floats{} + least) & (x <= Floats{} + most)); left != 0;
         left &= left - 1)
      append(i + static_cast<size_t>(__builtin_ctz(left)));
  }
  for (; i < n; ++i) {
    if (weights[i] >= least && weights[i] <= most) append(i);
  }
  return count;
}

void Drop(float* weights, size_t n, float least) {
  for (size_t i = 0; i < n; ++i) weights[i] = weights[i] >= least ? weights[i] : 0.0f;
}

}  // namespace

// Filled at compile time: no code of this file may run before a check of the processor.
constinit const VocabularyLoops kVocabularyLoops = {
    .largest = &LargestUsable,
    .weigh = &Weigh,
    .sum = &Sum,
    .count = &Count,
    .maxima = &Maxima,
    .gather = &Gather,
    .drop = &Drop,
};

}  // namespace tandem::kernels::host::TANDEM_LOOPS_ISA
