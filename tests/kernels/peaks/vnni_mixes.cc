#include <immintrin.h>

#include "tests/kernels/peaks/mix.h"
#include "tests/kernels/peaks/renewed.h"

namespace tandem::kernels::peaks::avx512_vnni {
namespace {

constexpr int kAccumulators = 12;  // at least latency times units

int64_t RunInt8(int64_t rounds) {
  __m512i sums[kAccumulators] = {};
  const __m512i weights = _mm512_set1_epi8(3), values = _mm512_set1_epi8(5);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m512i& sum : sums) sum = Renewed(_mm512_dpbusd_epi32(sum, weights, values));
  }
  for (int i = 1; i < kAccumulators; ++i) sums[0] = _mm512_add_epi32(sums[0], sums[i]);
  return sums[0][0];
}

constexpr Mix kMixes[] = {{"int8", 2.0 * sizeof(__m512i) * kAccumulators, &RunInt8}};

}  // namespace

std::span<const Mix> Mixes() { return kMixes; }

}  // namespace tandem::kernels::peaks::avx512_vnni
