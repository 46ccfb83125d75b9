// A float vector of the instruction set that a file is compiled for: 8 lanes with AVX2, 16 with
// AVX-512, one spelling.
//
// Only files compiled once per instruction set include this; TANDEM_CPU_ISA names their namespace,
// so that the linker never substitutes one set's inline function for another's. Such files also
// avoid the standard library's inline functions. Only Fma is fused (-ffp-contract=off).
#ifndef TANDEM_KERNELS_CPU_VEC_H_
#define TANDEM_KERNELS_CPU_VEC_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

#if defined(__AVX512F__)

using Vec = __m512;
using Mask = __mmask16;
inline constexpr int kLanes = 16;

inline Vec Zero() { return _mm512_setzero_ps(); }
inline Vec Set1(float x) { return _mm512_set1_ps(x); }
inline Vec Load(const float* p) { return _mm512_loadu_ps(p); }
inline void Store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
inline Vec LoadHalf(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline void StoreHalf(uint16_t* p, Vec v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline Vec LoadBf16(const uint16_t* p) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
// The BF16 values in the low and the high halves of the lanes.
inline Vec LowBf16(Vec pairs) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(pairs), 16));
}
inline Vec HighBf16(Vec pairs) {
  return _mm512_castsi512_ps(
      _mm512_and_si512(_mm512_castps_si512(pairs), _mm512_set1_epi32(-0x10000)));
}
// To nearest, ties to even; NaN stays NaN.
inline void StoreBf16(uint16_t* p, Vec v) {
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  const __m512i high = _mm512_srli_epi32(_mm512_mask_blend_epi32(nan, up, quiet), 16);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(high));
}
inline Vec LoadInt8(const int8_t* p) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
// 32 bytes of each, `a` in the first lanes.
inline Vec LoadBytes(const int8_t* a, const int8_t* b) {
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a));
  const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
  return _mm512_castsi512_ps(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
}
// The int8 in byte `kByte` of each lane.
template <int kByte>
inline Vec Int8At(Vec four) {
  const __m512i top = _mm512_slli_epi32(_mm512_castps_si512(four), 24 - 8 * kByte);
  return _mm512_cvtepi32_ps(_mm512_srai_epi32(top, 24));
}
// To nearest, ties to even. REQUIRES: values within +-127.
inline void StoreInt8(int8_t* p, Vec v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)));
}
inline Vec Fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }  // a * b + c
inline Vec Max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
inline Vec Min(Vec a, Vec b) { return _mm512_min_ps(a, b); }
inline Mask Less(Vec a, Vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
inline Mask IsNan(Vec a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
inline Vec Select(Mask m, Vec yes, Vec no) { return _mm512_mask_blend_ps(m, no, yes); }
inline float ReduceAdd(Vec v) { return _mm512_reduce_add_ps(v); }
inline float ReduceMax(Vec v) { return _mm512_reduce_max_ps(v); }
// v * 2^n where `shifted` holds n in its low mantissa bits.
inline Vec AddExponent(Vec v, Vec shifted) {
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(v),
                                              _mm512_slli_epi32(_mm512_castps_si512(shifted), 23)));
}
// v * 2^n, where `shifted` holds n in its low mantissa bits, but 0 where x < lowest. If x is NaN, v
// is.
inline Vec ScaleUnlessBelow(Vec v, Vec n, Vec, Vec x, Vec lowest) {
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, lowest, _CMP_NLT_UQ), v, n);
}
// Lanes i with lo <= i < hi; bounds outside [0, kLanes] are fine.
inline Mask LanesIn(int lo, int hi) {
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm512_cmpge_epi32_mask(lane, _mm512_set1_epi32(lo)) &
         _mm512_cmplt_epi32_mask(lane, _mm512_set1_epi32(hi));
}

// rows[i] lane j -> rows[j] lane i.
inline void Transpose(Vec rows[kLanes]) {
  Vec t[kLanes];
  for (int i = 0; i < kLanes; i += 2) {
    t[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
  const auto low = [](Vec a, Vec b) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
  const auto high = [](Vec a, Vec b) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
  // u[4 g + j], quarter l: column 4 l + j of rows 4 g to 4 g + 3.
  Vec u[kLanes];
  for (int i = 0; i < kLanes; i += 4) {
    u[i] = low(t[i], t[i + 2]);
    u[i + 1] = high(t[i], t[i + 2]);
    u[i + 2] = low(t[i + 1], t[i + 3]);
    u[i + 3] = high(t[i + 1], t[i + 3]);
  }
  for (int j = 0; j < 4; ++j) {
    const Vec even_ab = _mm512_shuffle_f32x4(u[j], u[4 + j], 0x88);
    const Vec odd_ab = _mm512_shuffle_f32x4(u[j], u[4 + j], 0xdd);
    const Vec even_cd = _mm512_shuffle_f32x4(u[8 + j], u[12 + j], 0x88);
    const Vec odd_cd = _mm512_shuffle_f32x4(u[8 + j], u[12 + j], 0xdd);
    rows[j] = _mm512_shuffle_f32x4(even_ab, even_cd, 0x88);
    rows[4 + j] = _mm512_shuffle_f32x4(odd_ab, odd_cd, 0x88);
    rows[8 + j] = _mm512_shuffle_f32x4(even_ab, even_cd, 0xdd);
    rows[12 + j] = _mm512_shuffle_f32x4(odd_ab, odd_cd, 0xdd);
  }
}

#else  // AVX2, FMA, F16C

using Vec = __m256;
using Mask = __m256;
inline constexpr int kLanes = 8;

inline Vec Zero() { return _mm256_setzero_ps(); }
inline Vec Set1(float x) { return _mm256_set1_ps(x); }
inline Vec Load(const float* p) { return _mm256_loadu_ps(p); }
inline void Store(float* p, Vec v) { _mm256_storeu_ps(p, v); }
inline Vec LoadHalf(const uint16_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline void StoreHalf(uint16_t* p, Vec v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline Vec LoadBf16(const uint16_t* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
// The BF16 values in the low and the high halves of the lanes.
inline Vec LowBf16(Vec pairs) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(pairs), 16));
}
inline Vec HighBf16(Vec pairs) {
  return _mm256_castsi256_ps(
      _mm256_and_si256(_mm256_castps_si256(pairs), _mm256_set1_epi32(-0x10000)));
}
// To nearest, ties to even; NaN stays NaN.
inline void StoreBf16(uint16_t* p, Vec v) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  const __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(up, quiet, nan), 16);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(p),
      _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1)));
}
inline Vec LoadInt8(const int8_t* p) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
// 32 bytes; the second address is of machines with wider vectors.
inline Vec LoadBytes(const int8_t* a, const int8_t*) {
  return _mm256_castsi256_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a)));
}
// The int8 in byte `kByte` of each lane.
template <int kByte>
inline Vec Int8At(Vec four) {
  const __m256i top = _mm256_slli_epi32(_mm256_castps_si256(four), 24 - 8 * kByte);
  return _mm256_cvtepi32_ps(_mm256_srai_epi32(top, 24));
}
// To nearest, ties to even. REQUIRES: values within +-127.
inline void StoreInt8(int8_t* p, Vec v) {
  const __m256i whole = _mm256_cvtps_epi32(v);
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
}
inline Vec Fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }  // a * b + c
inline Vec Max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
inline Vec Min(Vec a, Vec b) { return _mm256_min_ps(a, b); }
inline Mask Less(Vec a, Vec b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
inline Mask IsNan(Vec a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
inline Vec Select(Mask m, Vec yes, Vec no) { return _mm256_blendv_ps(no, yes, m); }
inline float ReduceAdd(Vec v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float ReduceMax(Vec v) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
// v * 2^n where `shifted` holds n in its low mantissa bits.
inline Vec AddExponent(Vec v, Vec shifted) {
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(v),
                                              _mm256_slli_epi32(_mm256_castps_si256(shifted), 23)));
}
// v * 2^n, where `shifted` holds n in its low mantissa bits, but 0 where x < lowest; x where that
// is NaN.
inline Vec ScaleUnlessBelow(Vec v, Vec, Vec shifted, Vec x, Vec lowest) {
  const Vec scaled = _mm256_andnot_ps(Less(x, lowest), AddExponent(v, shifted));
  return Select(IsNan(x), x, scaled);
}
// Lanes i with lo <= i < hi; bounds outside [0, kLanes] are fine.
inline Mask LanesIn(int lo, int hi) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_castsi256_ps(_mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(lo), lane),
                                                 _mm256_cmpgt_epi32(_mm256_set1_epi32(hi), lane)));
}

// rows[i] lane j -> rows[j] lane i.
inline void Transpose(Vec rows[kLanes]) {
  Vec t[kLanes];
  for (int i = 0; i < kLanes; i += 2) {
    t[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  const auto low = [](Vec a, Vec b) {
    return _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
  };
  const auto high = [](Vec a, Vec b) {
    return _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
  };
  // u[4 g + j], half l: column 4 l + j of rows 4 g to 4 g + 3.
  Vec u[kLanes];
  for (int i = 0; i < kLanes; i += 4) {
    u[i] = low(t[i], t[i + 2]);
    u[i + 1] = high(t[i], t[i + 2]);
    u[i + 2] = low(t[i + 1], t[i + 3]);
    u[i + 3] = high(t[i + 1], t[i + 3]);
  }
  for (int j = 0; j < 4; ++j) {
    rows[j] = _mm256_permute2f128_ps(u[j], u[4 + j], 0x20);
    rows[4 + j] = _mm256_permute2f128_ps(u[j], u[4 + j], 0x31);
  }
}

#endif

// The first n of kLanes floats, zeros after; reads nothing beyond.
inline Vec LoadPartial(const float* p, int n) {
  float lanes[kLanes] = {};
  std::memcpy(lanes, p, static_cast<size_t>(n) * sizeof(float));
  return Load(lanes);
}
inline void StorePartial(float* p, Vec v, int n) {
  float lanes[kLanes];
  Store(lanes, v);
  std::memcpy(p, lanes, static_cast<size_t>(n) * sizeof(float));
}
inline float HalfToFloat(uint16_t half) { return _cvtsh_ss(half); }
inline uint16_t FloatToHalf(float x) {
  return static_cast<uint16_t>(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

// exp(x) within [-87.3, 88.3]: 2^n times a polynomial in r = x - n ln 2, |r| <= ln(2) / 2.
inline Vec ExpInRange(Vec clamped) {
  const Vec magic = Set1(0x1.8p23f);  // adding it leaves the nearest integer in the low bits
  const Vec shifted = Fma(clamped, Set1(1.44269504f), magic);
  const Vec n = shifted - magic;
  // ln 2 in two parts; the first has few bits, so that n times it is exact.
  const Vec r = Fma(n, Set1(2.12194440e-4f), Fma(n, Set1(-0.693359375f), clamped));
  Vec p = Set1(1.0f / 5040);
  p = Fma(p, r, Set1(1.0f / 720));
  p = Fma(p, r, Set1(1.0f / 120));
  p = Fma(p, r, Set1(1.0f / 24));
  p = Fma(p, r, Set1(1.0f / 6));
  p = Fma(p, r, Set1(0.5f));
  p = Fma(p, r, Set1(1.0f));
  p = Fma(p, r, Set1(1.0f));
  return AddExponent(p, shifted);
}

// exp(x), relative error below 2e-7; exactly 1 at 0; 0 below -87.3, infinity above 88.3; NaN stays
// NaN.
inline Vec Exp(Vec x) {
  const Vec lowest = Set1(-87.3f), highest = Set1(88.3f);
  Vec result = ExpInRange(Min(Max(x, lowest), highest));
  result = Select(Less(x, lowest), Zero(), result);
  result = Select(Less(highest, x), Set1(__builtin_inff()), result);
  return Select(IsNan(x), x, result);
}

// exp of values <= 0 and NaN, likewise, by a shorter polynomial: r^2 times one that takes the
// values of (exp(r) - 1 - r) / r^2 at five Chebyshev nodes. Relative error below 1e-7.
inline Vec ExpOfNonPositive(Vec x) {
  const Vec lowest = Set1(-87.3f), magic = Set1(0x1.8p23f);
  const Vec clamped = Max(lowest, x);  // NaN stays
  const Vec shifted = Fma(clamped, Set1(1.44269504f), magic);
  const Vec n = shifted - magic;
  const Vec r = Fma(n, Set1(2.12194440e-4f), Fma(n, Set1(-0.693359375f), clamped));
  Vec p = Set1(1.3926191e-3f);
  p = Fma(p, r, Set1(8.36318545e-3f));
  p = Fma(p, r, Set1(4.16665561e-2f));
  p = Fma(p, r, Set1(0.166665763f));
  p = Fma(p, r, Set1(0.5f));
  p = Fma(p, r, Set1(1.0f));
  p = Fma(p, r, Set1(1.0f));
  return ScaleUnlessBelow(p, n, shifted, x, lowest);
}

// The same function, for one value.
inline float ExpOne(float x) {
  float lanes[kLanes];
  Store(lanes, Exp(Set1(x)));
  return lanes[0];
}

// 1 + exp(x), which needs less of Exp's care: what is added below -87.3 is lost, and one choice
// serves both infinity above 88.3 and NaN.
inline Vec OnePlusExp(Vec x) {
  const Vec above = Set1(__builtin_nextafterf(88.3f, 89.0f));
  const Vec exp = ExpInRange(Min(Max(x, Set1(-87.3f)), Set1(88.3f)));
  return Set1(1.0f) + Select(Less(x, above), exp, x + Set1(__builtin_inff()));
}

inline Vec Sigmoid(Vec x) { return Set1(1.0f) / OnePlusExp(Zero() - x); }
// x sigmoid(x); -0 where exp overflows.
inline Vec Silu(Vec x) { return x / OnePlusExp(Zero() - x); }

// tanh(x), relative error below 3e-7; NaN stays NaN. Below 0.625 x + x^3 P(x^2), where P takes
// the function's values at five Chebyshev nodes; above by exp.
inline Vec Tanh(Vec x) {
  const Vec magnitude = Max(x, Zero() - x);
  const Vec z = x * x;
  Vec p = Set1(-0.00609671418f);
  p = Fma(p, z, Set1(0.0209971797f));
  p = Fma(p, z, Set1(-0.0538509078f));
  p = Fma(p, z, Set1(0.133327693f));
  p = Fma(p, z, Set1(-0.333333284f));
  const Vec near = Fma(x * z, p, x);
  const Vec one = Set1(1.0f);
  const Vec far = one - Set1(2.0f) / OnePlusExp(magnitude + magnitude);
  const Vec signed_far = Select(Less(x, Zero()), Zero() - far, far);
  return Select(Less(Set1(0.625f), magnitude), signed_far, near);
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_VEC_H_
