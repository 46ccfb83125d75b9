#include "kernels/cpu/matmul/bf16_pairs.h"

#include <immintrin.h>

#include <cstring>

namespace tandem::kernels::cpu {
namespace {

// In the lower half of each lane.
__m256i Round(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc0), nan);
}

}  // namespace

void RoundToBf16Pairs(const float* x, uint32_t count, uint32_t* out) {
  constexpr uint32_t kStep = 16;
  uint32_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    const __m256i packed =
        _mm256_packus_epi32(Round(_mm256_loadu_ps(x + i)), Round(_mm256_loadu_ps(x + i + 8)));
    // The pack works on 128-bit halves.
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i / 2),
                        _mm256_permute4x64_epi64(packed, 0xd8));
  }
  if (i == count) return;
  float last[kStep] = {};
  uint32_t pairs[kStep / 2];
  std::memcpy(last, x + i, (count - i) * sizeof(float));
  RoundToBf16Pairs(last, kStep, pairs);
  std::memcpy(out + i / 2, pairs, Bf16Pairs(count - i) * sizeof(pairs[0]));
}

}  // namespace tandem::kernels::cpu
