// Products of bytes (VNNI, and AVX-VNNI's 256 bits) and of pairs of BF16.
#ifndef TANDEM_TOOLS_SIMD_EMULATION_BYTES_AND_PAIRS_H_
#define TANDEM_TOOLS_SIMD_EMULATION_BYTES_AND_PAIRS_H_

#include <cstdint>

#include "tools/simd_emulation/lanes.h"
#include "tools/simd_emulation/processor.h"

namespace tandem {

// sum + four products of unsigned bytes with signed ones, of 32-bit lanes.
TANDEM_EMULATED __m256i _mm256_dpbusd_avx_epi32(__m256i sum, __m256i w, __m256i x) {
  // Of each pair of bytes the first and the second, as 16 bits.
  const __m256i first = _mm256_madd_epi16(_mm256_and_si256(w, _mm256_set1_epi16(0xff)),
                                          _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8));
  const __m256i second = _mm256_madd_epi16(_mm256_srli_epi16(w, 8), _mm256_srai_epi16(x, 8));
  return _mm256_add_epi32(sum, _mm256_add_epi32(first, second));
}
TANDEM_EMULATED __m512i _mm512_dpbusd_epi32(__m512i sum, __m512i w, __m512i x) {
  simd_emulation::NeedVnni();
  return simd_emulation::OnHalves<__m512i>(
      [](__m256i s, __m256i u, __m256i v) { return _mm256_dpbusd_avx_epi32(s, u, v); }, sum, w, x);
}

namespace simd_emulation {

// BF16 instructions take subnormal numbers for zeros, and give none.
TANDEM_EMULATED float WithoutSubnormals(float x) {
  return __builtin_fabsf(x) < __FLT_MIN__ ? __builtin_copysignf(0, x) : x;
}
TANDEM_EMULATED float FromBf16(uint32_t bits) {
  return WithoutSubnormals(std::bit_cast<float>(bits << 16));
}
// To nearest, ties to even.
TANDEM_EMULATED uint16_t ToBf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(WithoutSubnormals(x));
  if (__builtin_isnan(x)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace simd_emulation

// b in the first lanes.
TANDEM_EMULATED __m512bh _mm512_cvtne2ps_pbh(__m512 a, __m512 b) {
  simd_emulation::NeedBf16();
  return simd_emulation::FromLanes<__m512bh, uint16_t>(
      [&](size_t i) { return simd_emulation::ToBf16(i < 16 ? b[i] : a[i - 16]); });
}
// sum + two products per lane, each added with one rounding, the upper half's first.
TANDEM_EMULATED __m512 _mm512_dpbf16_ps(__m512 sum, __m512bh a, __m512bh b) {
  simd_emulation::NeedBf16();
  const auto x = simd_emulation::Lanes<uint32_t>(a), y = simd_emulation::Lanes<uint32_t>(b);
  return simd_emulation::FromLanes<__m512, float>([&](size_t i) {
    const auto add = [&](float to, int shift) {
      const float product_with = simd_emulation::FromBf16(x[i] >> shift & 0xffff);
      return simd_emulation::WithoutSubnormals(
          __builtin_fmaf(product_with, simd_emulation::FromBf16(y[i] >> shift & 0xffff), to));
    };
    return add(add(simd_emulation::WithoutSubnormals(sum[i]), 16), 0);
  });
}

}  // namespace tandem

#endif  // TANDEM_TOOLS_SIMD_EMULATION_BYTES_AND_PAIRS_H_
