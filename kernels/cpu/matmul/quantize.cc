#include <immintrin.h>

#include <bit>

#include "kernels/cpu/matmul/quant_block.h"

namespace tandem::kernels::cpu {
namespace {

// Below this 127 / max would overflow a float.
constexpr float kSmallest = 0x1p-100f;

int32_t HorizontalMax(__m256i v) {
  __m128i m = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
  return _mm_cvtsi128_si32(m);
}

int32_t Sum16(__m128i bytes) {
  const __m128i ones = _mm_set1_epi16(1);
  const __m256i wide = _mm256_cvtepi8_epi16(bytes);
  __m128i s = _mm_add_epi16(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
  s = _mm_madd_epi16(s, ones);
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  return _mm_cvtsi128_si32(s);
}

// Writes the whole line in two stores, one after the other. Other threads have read it since it was
// last written, and a store of a few bytes to such a line takes several times as long
// (docs/performance.md).
void QuantizeBlock(const float* x, QuantBlock* out) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256 v[4];
  __m256i max = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_loadu_ps(x + 8 * i);
    // Magnitudes order the same as integers; infinity and NaN are the largest.
    max = _mm256_max_epu32(max, _mm256_and_si256(_mm256_castps_si256(v[i]), magnitude));
  }
  const float amax = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(HorizontalMax(max))));
  const bool zero = amax < kSmallest;  // false for NaN
  const float d = zero ? 0.0f : amax / 127.0f;
  const __m256 inverse = _mm256_set1_ps(zero ? 0.0f : 127.0f / amax);
  __m256i rounded[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) rounded[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], inverse));
  const __m256i a = _mm256_packs_epi32(rounded[0], rounded[1]);
  const __m256i b = _mm256_packs_epi32(rounded[2], rounded[3]);
  // The packs work on 128-bit halves; put the groups of four back in order.
  const __m256i q = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(a, b),
                                                _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  const int32_t low = Sum16(_mm256_castsi256_si128(q));
  const int32_t high = Sum16(_mm256_extracti128_si256(q, 1));
  const int32_t sum = low + high;
  const __m256i rest = _mm256_setr_epi32(std::bit_cast<int32_t>(d),
                                         std::bit_cast<int32_t>(d * static_cast<float>(sum)), -sum,
                                         -low, -high, 0, 0, 0);
  _mm256_store_si256(reinterpret_cast<__m256i*>(out), q);
  _mm256_store_si256(reinterpret_cast<__m256i*>(out) + 1, rest);
}

}  // namespace

void QuantizeRow(const float* x, uint32_t count, uint32_t lead, uint32_t blocks, QuantBlock* out) {
  constexpr uint32_t kValues = QuantBlock::kValues;
  for (uint32_t b = 0; b < blocks; ++b) {
    const uint32_t begin = b * kValues;  // in the window
    if (begin >= lead && begin + kValues <= lead + count) {
      QuantizeBlock(x + (begin - lead), &out[b]);
      continue;
    }
    float edge[kValues];
    for (uint32_t i = 0; i < kValues; ++i) {
      const uint32_t at = begin + i;
      edge[i] = at >= lead && at < lead + count ? x[at - lead] : 0.0f;
    }
    QuantizeBlock(edge, &out[b]);
  }
}

}  // namespace tandem::kernels::cpu
