// Arithmetic of integers, and conversions between their widths.
#ifndef TANDEM_TOOLS_SIMD_EMULATION_INTEGERS_H_
#define TANDEM_TOOLS_SIMD_EMULATION_INTEGERS_H_

#include <cstdint>

#include "tools/simd_emulation/lanes.h"

namespace tandem {

TANDEM_BY_HALVES(__m512i, add_epi8)
TANDEM_BY_HALVES(__m512i, add_epi16)
TANDEM_BY_HALVES(__m512i, add_epi32)
TANDEM_BY_HALVES(__m512i, sub_epi32)
TANDEM_BY_HALVES(__m512i, madd_epi16)
TANDEM_BY_HALVES(__m512i, maddubs_epi16)

TANDEM_EMULATED __m512i _mm512_and_si512(__m512i a, __m512i b) { return a & b; }
TANDEM_EMULATED __m512i _mm512_or_si512(__m512i a, __m512i b) { return a | b; }
TANDEM_EMULATED __m512i _mm512_xor_si512(__m512i a, __m512i b) { return a ^ b; }
// Bit i of the result is bit (a, b, c) of the table.
TANDEM_EMULATED __m512i _mm512_ternarylogic_epi32(__m512i a, __m512i b, __m512i c, int table) {
  __m512i result = {};
  for (int row = 0; row < 8; ++row) {
    if ((table >> row & 1) == 0) continue;
    result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
  }
  return result;
}
TANDEM_EMULATED __m512i _mm512_abs_epi8(__m512i a) {
  return simd_emulation::OnHalves<__m512i>([](__m256i x) { return _mm256_abs_epi8(x); }, a);
}

TANDEM_SHIFT_BY_HALVES(slli_epi16)
TANDEM_SHIFT_BY_HALVES(slli_epi32)
TANDEM_SHIFT_BY_HALVES(srli_epi32)
TANDEM_SHIFT_BY_HALVES(srai_epi32)

TANDEM_EMULATED int _mm512_reduce_add_epi32(__m512i a) {
  uint32_t sum = 0;
  for (const uint32_t lane : simd_emulation::Lanes<uint32_t>(a)) sum += lane;
  return static_cast<int>(sum);
}

// --- wider and narrower ---
namespace simd_emulation {

template <class To, class From, class Vector>
TANDEM_EMULATED __m512i Widened(Vector a) {
  const auto from = Lanes<From>(a);
  return FromLanes<__m512i, To>([&](size_t i) { return from[i]; });
}

}  // namespace simd_emulation

TANDEM_EMULATED __m512i _mm512_cvtepi8_epi16(__m256i a) {
  return simd_emulation::Widened<int16_t, int8_t>(a);
}
TANDEM_EMULATED __m512i _mm512_cvtepi8_epi32(__m128i a) {
  return simd_emulation::Widened<int32_t, int8_t>(a);
}
TANDEM_EMULATED __m512i _mm512_cvtepu8_epi32(__m128i a) {
  return simd_emulation::Widened<int32_t, uint8_t>(a);
}
TANDEM_EMULATED __m512i _mm512_cvtepu16_epi32(__m256i a) {
  return simd_emulation::Widened<int32_t, uint16_t>(a);
}
// The low bits of each lane.
TANDEM_EMULATED __m128i _mm512_cvtepi32_epi8(__m512i a) {
  const auto from = simd_emulation::Lanes<uint32_t>(a);
  return simd_emulation::FromLanes<__m128i, uint8_t>([&](size_t i) { return from[i]; });
}
TANDEM_EMULATED __m256i _mm512_cvtepi32_epi16(__m512i a) {
  const auto from = simd_emulation::Lanes<uint32_t>(a);
  return simd_emulation::FromLanes<__m256i, uint16_t>([&](size_t i) { return from[i]; });
}

// --- masks ---
TANDEM_EMULATED __mmask16 _mm512_cmpge_epi32_mask(__m512i a, __m512i b) {
  const auto x = simd_emulation::Lanes<int32_t>(a), y = simd_emulation::Lanes<int32_t>(b);
  return simd_emulation::MaskOf<__mmask16>([&](size_t i) { return x[i] >= y[i]; });
}
TANDEM_EMULATED __mmask16 _mm512_cmplt_epi32_mask(__m512i a, __m512i b) {
  const auto x = simd_emulation::Lanes<int32_t>(a), y = simd_emulation::Lanes<int32_t>(b);
  return simd_emulation::MaskOf<__mmask16>([&](size_t i) { return x[i] < y[i]; });
}
TANDEM_EMULATED __mmask64 _mm512_test_epi8_mask(__m512i a, __m512i b) {
  const auto both = simd_emulation::Lanes<uint8_t>(a & b);
  return simd_emulation::MaskOf<__mmask64>([&](size_t i) { return both[i] != 0; });
}
TANDEM_EMULATED __mmask64 _mm512_movepi8_mask(__m512i a) {
  const auto x = simd_emulation::Lanes<int8_t>(a);
  return simd_emulation::MaskOf<__mmask64>([&](size_t i) { return x[i] < 0; });
}
TANDEM_EMULATED __mmask16 _mm512_movepi32_mask(__m512i a) {
  const auto x = simd_emulation::Lanes<int32_t>(a);
  return simd_emulation::MaskOf<__mmask16>([&](size_t i) { return x[i] < 0; });
}
TANDEM_EMULATED __m512i _mm512_mask_sub_epi8(__m512i otherwise, __mmask64 mask, __m512i a,
                                             __m512i b) {
  const auto none = simd_emulation::Lanes<uint8_t>(otherwise);
  const auto x = simd_emulation::Lanes<uint8_t>(a), y = simd_emulation::Lanes<uint8_t>(b);
  return simd_emulation::FromLanes<__m512i, uint8_t>(
      [&](size_t i) { return simd_emulation::IsSet(mask, i) ? x[i] - y[i] : none[i]; });
}
TANDEM_EMULATED __m512i _mm512_maskz_mov_epi8(__mmask64 mask, __m512i a) {
  const auto x = simd_emulation::Lanes<uint8_t>(a);
  return simd_emulation::FromLanes<__m512i, uint8_t>(
      [&](size_t i) { return simd_emulation::IsSet(mask, i) ? x[i] : 0; });
}
TANDEM_EMULATED __m512i _mm512_mask_blend_epi32(__mmask16 mask, __m512i a, __m512i b) {
  const auto x = simd_emulation::Lanes<uint32_t>(a), y = simd_emulation::Lanes<uint32_t>(b);
  return simd_emulation::FromLanes<__m512i, uint32_t>(
      [&](size_t i) { return simd_emulation::IsSet(mask, i) ? y[i] : x[i]; });
}

}  // namespace tandem

#endif  // TANDEM_TOOLS_SIMD_EMULATION_INTEGERS_H_
