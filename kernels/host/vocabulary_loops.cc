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
  constexpr size_t kVecs = 4;  // a comparison need not wait for the one before
  const Floats limit = Floats{} + kInfinity;
  Floats lanes[kVecs];
  for (Floats& vec : lanes) vec = Floats{} - kInfinity;
  size_t i = 0;
  for (; i + kVecs * kLanes <= n; i += kVecs * kLanes) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVecs; ++v) {
      const Floats x = LoadAt<Floats>(logits + i + v * kLanes);
      const Floats below = x < limit ? x : limit;  // NaN is not
      lanes[v] = lanes[v] < below ? below : lanes[v];
    }
  }
  float largest = -kInfinity;
  for (; i < n; ++i) largest = largest < usable(logits[i]) ? usable(logits[i]) : largest;
  for (const Floats& vec : lanes) {
    for (size_t j = 0; j < kLanes; ++j) largest = largest < vec[j] ? vec[j] : largest;
  }
  return largest;
}

size_t First(const float* x, size_t n, float value) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const uint32_t equal = BitsOf(LoadAt<Floats>(x + i) == Floats{} + value);
    if (equal != 0) return i + static_cast<size_t>(__builtin_ctz(equal));
  }
  while (i < n && x[i] != value) ++i;
  return i;
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

double Sum(const float* weights, size_t n, float least) {
  constexpr size_t kDoubles = kLanes / 2, kVecs = kSumLanes / kDoubles;
  const HalfFloats limit = HalfFloats{} + least;
  Doubles lanes[kVecs] = {};
  size_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
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

// Which of kLanes weights are in [least, most].
uint32_t Within(Floats weights, float least, float most) {
  return BitsOf((weights >= Floats{} + least) & (weights <= Floats{} + most));
}

size_t Gather(const float* weights, size_t n, float least, float most, size_t room,
              uint64_t* keys) {
  size_t count = 0;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    uint32_t left = Within(LoadAt<Floats>(weights + i), least, most);
    if (left == 0) continue;
    if (count + static_cast<size_t>(__builtin_popcount(left)) > room) return room + 1;
    for (; left != 0; left &= left - 1) {
      const size_t id = i + static_cast<size_t>(__builtin_ctz(left));
      keys[count++] = WeightKey(weights[id], static_cast<uint32_t>(id));
    }
  }
  for (; i < n; ++i) {
    if (weights[i] < least || weights[i] > most) continue;
    if (count == room) return room + 1;
    keys[count++] = WeightKey(weights[i], static_cast<uint32_t>(i));
  }
  return count;
}

#if defined(__AVX2__) && !defined(__AVX512F__)
// For every set of eight lanes their numbers, first.
struct LanesOfSet {
  alignas(32) int32_t lanes[256][8];

  constexpr LanesOfSet() : lanes() {
    for (int set = 0; set < 256; ++set) {
      int count = 0;
      for (int lane = 0; lane < 8; ++lane) {
        if (set >> lane & 1) lanes[set][count++] = lane;
      }
    }
  }
};
constexpr LanesOfSet kLanesOfSet;
#endif

// Writes the lanes of `set` to the front of `out`, and anything after them, up to kLanes.
void StoreFirst(Floats x, uint32_t set, float* out) {
#if defined(__AVX512F__)
  // The form with a mask that stores is microcode on Zen 4.
  _mm512_storeu_ps(
      out, _mm512_maskz_compress_ps(static_cast<__mmask16>(set), reinterpret_cast<__m512>(x)));
#elif defined(__AVX2__)
  const __m256i order = _mm256_load_si256(reinterpret_cast<const __m256i*>(kLanesOfSet.lanes[set]));
  _mm256_storeu_ps(out, _mm256_permutevar8x32_ps(reinterpret_cast<__m256>(x), order));
#else
  for (; set != 0; set &= set - 1) *out++ = x[__builtin_ctz(set)];
#endif
}

size_t Narrow(const float* weights, size_t n, float least, float most, float* out) {
  size_t count = 0;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Floats x = LoadAt<Floats>(weights + i);
    const uint32_t set = Within(x, least, most);
    StoreFirst(x, set, out + count);
    count += static_cast<size_t>(__builtin_popcount(set));
  }
  for (; i < n; ++i) {
    const float x = weights[i];
    out[count] = x;
    count += x >= least && x <= most ? 1 : 0;
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
    .first = &First,
    .weigh = &Weigh,
    .sum = &Sum,
    .maxima = &Maxima,
    .gather = &Gather,
    .narrow = &Narrow,
    .drop = &Drop,
};

}  // namespace tandem::kernels::host::TANDEM_LOOPS_ISA
