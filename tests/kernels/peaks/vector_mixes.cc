// Compiled for AVX2 and for AVX-512; TANDEM_PEAKS_ISA is the namespace.
#include <immintrin.h>

#include "tests/kernels/peaks/mix.h"
#include "tests/kernels/peaks/renewed.h"

namespace tandem::kernels::peaks::TANDEM_PEAKS_ISA {
namespace {

// Independent sums: at least as many as units times the latency of what depends on the sum before,
// which of the integer mixes is only vpaddd.
constexpr int kInt8Accumulators = 4;
constexpr int kFloatAccumulators = 12;

#ifdef __AVX512BW__
using Int = __m512i;
using Float = __m512;
Int Bytes(char value) { return _mm512_set1_epi8(value); }
Int Words(short value) { return _mm512_set1_epi16(value); }
Int MulAddBytes(Int a, Int b) { return _mm512_maddubs_epi16(a, b); }
Int MulAddWords(Int a, Int b) { return _mm512_madd_epi16(a, b); }
Int AddWords(Int a, Int b) { return _mm512_add_epi16(a, b); }
Int AddInts(Int a, Int b) { return _mm512_add_epi32(a, b); }
Float Floats(float value) { return _mm512_set1_ps(value); }
Float MulAdd(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
#else
using Int = __m256i;
using Float = __m256;
Int Bytes(char value) { return _mm256_set1_epi8(value); }
Int Words(short value) { return _mm256_set1_epi16(value); }
Int MulAddBytes(Int a, Int b) { return _mm256_maddubs_epi16(a, b); }
Int MulAddWords(Int a, Int b) { return _mm256_madd_epi16(a, b); }
Int AddWords(Int a, Int b) { return _mm256_add_epi16(a, b); }
Int AddInts(Int a, Int b) { return _mm256_add_epi32(a, b); }
Float Floats(float value) { return _mm256_set1_ps(value); }
Float MulAdd(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
#endif

// vpmaddubsw `Sums` times, summed in 16 bits, then vpmaddwd and vpaddd.
template <int Sums>
int64_t RunInt8(int64_t rounds) {
  Int sums[kInt8Accumulators] = {};
  Int weights = Bytes(3);
  const Int values = Bytes(5), ones = Words(1);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 4
    for (Int& sum : sums) {
      Int words = MulAddBytes(weights, values);
      weights = Renewed(weights);
#pragma GCC unroll 8
      for (int j = 1; j < Sums; ++j) {
        words = AddWords(words, MulAddBytes(weights, values));
        weights = Renewed(weights);
      }
      sum = Renewed(AddInts(sum, MulAddWords(words, ones)));
    }
  }
  for (int i = 1; i < kInt8Accumulators; ++i) sums[0] = AddInts(sums[0], sums[i]);
  return sums[0][0];
}

int64_t RunFloat(int64_t rounds) {
  Float sums[kFloatAccumulators] = {};
  const Float weights = Floats(1e-3f), values = Floats(1e-3f);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (Float& sum : sums) sum = Renewed(MulAdd(weights, values, sum));
  }
  for (int i = 1; i < kFloatAccumulators; ++i) sums[0] += sums[i];
  return static_cast<int64_t>(sums[0][0]);
}

constexpr double kInt8Ops = 2.0 * sizeof(Int) * kInt8Accumulators;
constexpr double kFloatOps = 2.0 * sizeof(Float) / sizeof(float) * kFloatAccumulators;
constexpr Mix kMixes[] = {{"int8:1", kInt8Ops, &RunInt8<1>},
                          {"int8:2", kInt8Ops * 2, &RunInt8<2>},
                          {"int8:4", kInt8Ops * 4, &RunInt8<4>},
                          {"int8:8", kInt8Ops * 8, &RunInt8<8>},
                          {"f32", kFloatOps, &RunFloat}};

}  // namespace

std::span<const Mix> Mixes() { return kMixes; }

}  // namespace tandem::kernels::peaks::TANDEM_PEAKS_ISA
