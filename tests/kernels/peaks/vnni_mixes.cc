#include <immintrin.h>

#include "tests/kernels/peaks/mix.h"
#include "tests/kernels/peaks/renewed.h"

namespace tandem::kernels::peaks::TANDEM_PEAKS_ISA {
namespace {

constexpr int kAccumulators = 12;  // at least latency times units

#if defined(__AVX512VNNI__)
using Vector = __m512i;
[[gnu::always_inline]] inline Vector Bytes(char value) { return _mm512_set1_epi8(value); }
[[gnu::always_inline]] inline Vector Dot(Vector sum, Vector w, Vector x) {
  return _mm512_dpbusd_epi32(sum, w, x);
}
#else
using Vector = __m256i;
[[gnu::always_inline]] inline Vector Bytes(char value) { return _mm256_set1_epi8(value); }
[[gnu::always_inline]] inline Vector Dot(Vector sum, Vector w, Vector x) {
  return _mm256_dpbusd_avx_epi32(sum, w, x);
}
#endif

int64_t RunInt8(int64_t rounds) {
  Vector sums[kAccumulators] = {};
  const Vector weights = Bytes(3), values = Bytes(5);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (Vector& sum : sums) sum = Renewed(Dot(sum, weights, values));
  }
  int64_t all = 0;
  for (const Vector& sum : sums) all += sum[0];
  return all;
}

constexpr Mix kMixes[] = {{"int8", 2.0 * sizeof(Vector) * kAccumulators, &RunInt8}};

}  // namespace

std::span<const Mix> Mixes() { return kMixes; }

}  // namespace tandem::kernels::peaks::TANDEM_PEAKS_ISA
