#include "kernels/cpu/matmul/quantize.h"

#include <immintrin.h>

namespace tandem::kernels::cpu {
namespace {

// Below this 127 / max would overflow a float.
constexpr float kSmallest = 0x1p-100f;

// Lane i: the largest of v[i]'s lanes, as unsigned integers.
__m128i LargestOfEach(const __m256i (&v)[4]) {
  __m128i m[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    m[i] = _mm_max_epu32(_mm256_castsi256_si128(v[i]), _mm256_extracti128_si256(v[i], 1));
  }
  const __m128i a = _mm_max_epu32(_mm_unpacklo_epi32(m[0], m[1]), _mm_unpackhi_epi32(m[0], m[1]));
  const __m128i b = _mm_max_epu32(_mm_unpacklo_epi32(m[2], m[3]), _mm_unpackhi_epi32(m[2], m[3]));
  return _mm_max_epu32(_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b));
}

// Of 32 values. Magnitudes order the same as integers; infinity and NaN are the largest.
__m256i LargestMagnitudes(const float* x) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i largest = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + 8 * i));
    largest = _mm256_max_epu32(largest, _mm256_and_si256(v, magnitude));
  }
  return largest;
}

// 32 values times `scale`, rounded, as bytes.
__m256i RoundToBytes(const float* x, __m256 scale) {
  __m256i rounded[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rounded[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), scale));
  }
  const __m256i a = _mm256_packs_epi32(rounded[0], rounded[1]);
  const __m256i b = _mm256_packs_epi32(rounded[2], rounded[3]);
  // Conversions of NaN give -128, which is outside QuantBlock's range.
  const __m256i bytes = _mm256_max_epi8(_mm256_packs_epi16(a, b), _mm256_set1_epi8(-127));
  // The packs work on 128-bit halves; put the groups of four back in order.
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Lane i: of the first 16 bytes of q[i] the sums of bytes 0, 1, 4, 5, .. and of bytes 2, 3, 6, 7,
// .., 16 bits each; lane 4 + i: of the last 16.
__m256i PairSums(const __m256i (&q)[4]) {
  __m256i s[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) s[i] = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q[i]);
  const __m256i a =
      _mm256_add_epi16(_mm256_unpacklo_epi32(s[0], s[1]), _mm256_unpackhi_epi32(s[0], s[1]));
  const __m256i b =
      _mm256_add_epi16(_mm256_unpacklo_epi32(s[2], s[3]), _mm256_unpackhi_epi32(s[2], s[3]));
  return _mm256_add_epi16(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

// out[i]: element i of each of `in`.
void Transpose(const __m128i (&in)[4], __m128i (&out)[4]) {
  const __m128i a = _mm_unpacklo_epi32(in[0], in[1]), b = _mm_unpackhi_epi32(in[0], in[1]);
  const __m128i c = _mm_unpacklo_epi32(in[2], in[3]), e = _mm_unpackhi_epi32(in[2], in[3]);
  out[0] = _mm_unpacklo_epi64(a, c);
  out[1] = _mm_unpackhi_epi64(a, c);
  out[2] = _mm_unpacklo_epi64(b, e);
  out[3] = _mm_unpackhi_epi64(b, e);
}

// The second halves of the lines of four blocks with scales d (lane i: of block i).
void MakeRest(__m128 d, __m256i pair_sums, __m256i (&out)[4]) {
  const __m128i zero = _mm_setzero_si128();
  const __m256i half_sums = _mm256_madd_epi16(pair_sums, _mm256_set1_epi16(1));
  const __m128i low = _mm256_castsi256_si128(half_sums);
  const __m128i high = _mm256_extracti128_si256(half_sums, 1);
  const __m128i sum = _mm_add_epi32(low, high);
  const __m128i neg_low = _mm_sub_epi16(zero, _mm256_castsi256_si128(pair_sums));
  const __m128i neg_high = _mm_sub_epi16(zero, _mm256_extracti128_si256(pair_sums, 1));
  __m128i first[4], last[4];
  Transpose({_mm_castps_si128(d), _mm_castps_si128(_mm_mul_ps(d, _mm_cvtepi32_ps(sum))),
             _mm_sub_epi32(zero, sum), _mm_sub_epi32(zero, low)},
            first);
  Transpose({_mm_sub_epi32(zero, high), neg_low, neg_high, _mm_add_epi16(neg_low, neg_high)}, last);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) out[i] = _mm256_set_m128i(last[i], first[i]);
}

// Writes whole lines in two stores, one after the other. Other threads have read them since they
// were last written, and a store of a few bytes to such a line takes several times as long
// (docs/performance.md).
void QuantizeFour(const float* const (&x)[4], QuantBlock* const (&out)[4]) {
  __m256i largest[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) largest[i] = LargestMagnitudes(x[i]);
  const __m128 amax = _mm_castsi128_ps(LargestOfEach(largest));
  const __m128 scaled = _mm_cmpnlt_ps(amax, _mm_set1_ps(kSmallest));  // true for NaN
  const __m128 most = _mm_set1_ps(127.0f);
  alignas(16) float inverse[4];
  _mm_store_ps(inverse, _mm_and_ps(scaled, _mm_div_ps(most, amax)));
  __m256i q[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) q[i] = RoundToBytes(x[i], _mm256_broadcast_ss(&inverse[i]));
  __m256i rest[4];
  MakeRest(_mm_and_ps(scaled, _mm_div_ps(amax, most)), PairSums(q), rest);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(out[i]), q[i]);
    _mm256_store_si256(reinterpret_cast<__m256i*>(out[i]) + 1, rest[i]);
  }
}

}  // namespace

void Quantizer::AddRow(const float* x, uint32_t count, uint32_t lead, uint32_t blocks,
                       QuantBlock* out) {
  constexpr uint32_t kValues = QuantBlock::kValues;
  for (uint32_t b = 0; b < blocks; ++b) {
    const uint32_t begin = b * kValues;  // in the window
    if (begin >= lead && begin + kValues <= lead + count) {
      Add(x + (begin - lead), &out[b]);
      continue;
    }
    float* const edge = edges_[waiting_];
    for (uint32_t i = 0; i < kValues; ++i) {
      const uint32_t at = begin + i;
      edge[i] = at >= lead && at < lead + count ? x[at - lead] : 0.0f;
    }
    Add(edge, &out[b]);
  }
}

void Quantizer::Finish() {
  if (waiting_ == 0) return;
  // Repeats the last block in the unused places.
  for (uint32_t i = waiting_; i < kAtOnce; ++i) {
    x_[i] = x_[waiting_ - 1];
    out_[i] = out_[waiting_ - 1];
  }
  QuantizeFour(x_, out_);
  waiting_ = 0;
}

void Quantizer::Add(const float* x, QuantBlock* out) {
  x_[waiting_] = x;
  out_[waiting_] = out;
  if (++waiting_ == kAtOnce) Finish();
}

}  // namespace tandem::kernels::cpu
