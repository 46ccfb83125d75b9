#include <immintrin.h>

#include "tests/kernels/peaks/mix.h"
#include "tests/kernels/peaks/renewed.h"

namespace tandem::kernels::peaks::avx512_bf16 {
namespace {

constexpr int kAccumulators = 12;  // at least latency times units
constexpr short kOne = 0x3f80;     // as BF16

int64_t RunBf16(int64_t rounds) {
  __m512 sums[kAccumulators] = {};
  const auto weights = reinterpret_cast<__m512bh>(_mm512_set1_epi16(kOne));
  const auto values = reinterpret_cast<__m512bh>(_mm512_set1_epi16(kOne));
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = Renewed(_mm512_dpbf16_ps(sum, weights, values));
  }
  for (int i = 1; i < kAccumulators; ++i) sums[0] += sums[i];
  return static_cast<int64_t>(sums[0][0]);
}

constexpr Mix kMixes[] = {{"bf16", 2.0 * sizeof(__m512) / 2 * kAccumulators, &RunBf16}};

}  // namespace

std::span<const Mix> Mixes() { return kMixes; }

}  // namespace tandem::kernels::peaks::avx512_bf16
