// Arithmetic of floats and conversions of them.
#ifndef TANDEM_TOOLS_SIMD_EMULATION_FLOATS_H_
#define TANDEM_TOOLS_SIMD_EMULATION_FLOATS_H_

#include <cstdint>

#include "tools/simd_emulation/lanes.h"

namespace tandem {

TANDEM_BY_HALVES(__m512, add_ps)
TANDEM_BY_HALVES(__m512, sub_ps)
TANDEM_BY_HALVES(__m512, mul_ps)
TANDEM_BY_HALVES(__m512, min_ps)
TANDEM_BY_HALVES(__m512, max_ps)
TANDEM_BY_HALVES(__m512, and_ps)
TANDEM_BY_HALVES(__m512, xor_ps)

TANDEM_EMULATED __m512 _mm512_fmadd_ps(__m512 a, __m512 b, __m512 c) {
  return simd_emulation::OnHalves<__m512>(
      [](__m256 x, __m256 y, __m256 z) { return _mm256_fmadd_ps(x, y, z); }, a, b, c);
}
TANDEM_EMULATED __m512 _mm512_fnmadd_ps(__m512 a, __m512 b, __m512 c) {
  return simd_emulation::OnHalves<__m512>(
      [](__m256 x, __m256 y, __m256 z) { return _mm256_fnmadd_ps(x, y, z); }, a, b, c);
}

namespace simd_emulation {

// Halves of halves, as the compiler adds them.
template <class Op>
TANDEM_EMULATED float Reduced(__m512 a, Op op) {
  auto lanes = Lanes<float>(a);
  for (size_t width = lanes.size() / 2; width > 0; width /= 2) {
    for (size_t i = 0; i < width; ++i) lanes[i] = op(lanes[i], lanes[i + width]);
  }
  return lanes[0];
}

}  // namespace simd_emulation

TANDEM_EMULATED float _mm512_reduce_add_ps(__m512 a) {
  return simd_emulation::Reduced(a, [](float x, float y) { return x + y; });
}
// Of NaN, and of zeros of both signs, another may be left than by the compiler's sequence.
TANDEM_EMULATED float _mm512_reduce_max_ps(__m512 a) {
  return simd_emulation::Reduced(a, [](float x, float y) { return x > y ? x : y; });
}

// a times 2 to the floor of b, rounded once. NaN with an infinite b is not as on a processor.
TANDEM_EMULATED __m512 _mm512_scalef_ps(__m512 a, __m512 b) {
  return simd_emulation::FromLanes<__m512, float>([&](size_t i) {
    // Within a double's exponents; beyond a float's nothing changes.
    const double exponent = __builtin_fmax(-1000, __builtin_fmin(1000, __builtin_floor(b[i])));
    return double{a[i]} * __builtin_exp2(__builtin_isfinite(b[i]) ? exponent : double{b[i]});
  });
}
TANDEM_EMULATED __m512 _mm512_maskz_scalef_ps(__mmask16 mask, __m512 a, __m512 b) {
  const __m512 scaled = _mm512_scalef_ps(a, b);
  return simd_emulation::FromLanes<__m512, float>(
      [&](size_t i) { return simd_emulation::IsSet(mask, i) ? scaled[i] : 0.0f; });
}
// What the floor leaves, rounded down itself, so that it is less than 1, and -0 of whole numbers.
// REQUIRES: that control.
TANDEM_EMULATED __m512 _mm512_reduce_ps(__m512 a, int control) {
  if (control != (_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)) __builtin_trap();
  return simd_emulation::FromLanes<__m512, float>([&](size_t i) {
    if (__builtin_isinf(a[i])) return 0.0f;
    const double rest = double{a[i]} - __builtin_floor(double{a[i]});
    if (rest == 0) return -0.0f;
    const auto nearest = static_cast<float>(rest);
    return nearest > rest || nearest == 1 ? __builtin_nextafterf(nearest, 0) : nearest;
  });
}

// --- comparisons ---
// REQUIRES: one of the three predicates below.
TANDEM_EMULATED __mmask16 _mm512_cmp_ps_mask(__m512 a, __m512 b, int predicate) {
  return simd_emulation::MaskOf<__mmask16>([&](size_t i) {
    if (predicate == _CMP_LT_OQ) return a[i] < b[i];
    if (predicate == _CMP_NLT_UQ) return !(a[i] < b[i]);
    if (predicate == _CMP_UNORD_Q) return __builtin_isunordered(a[i], b[i]) != 0;
    __builtin_trap();
  });
}
TANDEM_EMULATED __m512 _mm512_mask_blend_ps(__mmask16 mask, __m512 a, __m512 b) {
  return simd_emulation::FromLanes<__m512, float>(
      [&](size_t i) { return simd_emulation::IsSet(mask, i) ? b[i] : a[i]; });
}

// --- conversions ---
TANDEM_EMULATED __m512i _mm512_cvtps_epi32(__m512 a) {
  return simd_emulation::OnHalves<__m512i>([](__m256 x) { return _mm256_cvtps_epi32(x); }, a);
}
TANDEM_EMULATED __m512 _mm512_cvtepi32_ps(__m512i a) {
  return simd_emulation::OnHalves<__m512>([](__m256i x) { return _mm256_cvtepi32_ps(x); }, a);
}
TANDEM_EMULATED __m512d _mm512_cvtps_pd(__m256 a) { return __builtin_convertvector(a, __m512d); }
TANDEM_EMULATED __m512 _mm512_cvtph_ps(__m256i halves) {
  const auto x = std::bit_cast<std::array<__m128i, 2>>(halves);
  return std::bit_cast<__m512>(std::array<__m256, 2>{_mm256_cvtph_ps(x[0]), _mm256_cvtph_ps(x[1])});
}
// REQUIRES: to nearest.
TANDEM_EMULATED __m256i _mm512_cvtps_ph(__m512 a, int rounding) {
  constexpr int kToNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  if ((rounding & ~_MM_FROUND_NO_EXC) != _MM_FROUND_TO_NEAREST_INT) __builtin_trap();
  const auto x = std::bit_cast<simd_emulation::Halves<__m512>>(a);
  return std::bit_cast<__m256i>(
      std::array<__m128i, 2>{_mm256_cvtps_ph(x[0], kToNearest), _mm256_cvtps_ph(x[1], kToNearest)});
}

}  // namespace tandem

#endif  // TANDEM_TOOLS_SIMD_EMULATION_FLOATS_H_
