// Loads and stores, constants, casts, and what moves lanes.
#ifndef TANDEM_TOOLS_SIMD_EMULATION_MOVES_H_
#define TANDEM_TOOLS_SIMD_EMULATION_MOVES_H_

#include <cstdint>
#include <cstring>

#include "tools/simd_emulation/lanes.h"
#include "tools/simd_emulation/processor.h"

namespace tandem {

namespace simd_emulation {

template <class Vector>
TANDEM_EMULATED Vector LoadVector(const void* from) {
  Vector v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
template <class T>
TANDEM_EMULATED __m512i AllLanes(T x) {
  return FromLanes<__m512i, T>([x](size_t) { return x; });
}
// Two quarters of a, then two of b, each chosen by two bits.
template <class Vector>
TANDEM_EMULATED Vector ShuffledQuarters(Vector a, Vector b, int choice) {
  const auto x = std::bit_cast<std::array<__m128i, 4>>(a);
  const auto y = std::bit_cast<std::array<__m128i, 4>>(b);
  const auto at = [choice](int i) { return static_cast<size_t>(choice >> 2 * i & 3); };
  return std::bit_cast<Vector>(std::array<__m128i, 4>{x[at(0)], x[at(1)], y[at(2)], y[at(3)]});
}
// Lane i is lane index[i] of a, and of b beyond its end.
template <class T, class Vector>
TANDEM_EMULATED Vector Permuted(Vector a, __m512i index, Vector b) {
  const auto x = Lanes<T>(a), y = Lanes<T>(b);
  const auto at = Lanes<T>(index);
  return FromLanes<Vector, T>([&](size_t i) {
    const size_t from = at[i] % (2 * x.size());
    return from < x.size() ? x[from] : y[from - x.size()];
  });
}

}  // namespace simd_emulation

TANDEM_EMULATED __m512 _mm512_loadu_ps(const void* from) {
  return simd_emulation::LoadVector<__m512>(from);
}
TANDEM_EMULATED __m512i _mm512_loadu_si512(const void* from) {
  return simd_emulation::LoadVector<__m512i>(from);
}
// REQUIRES: an address that is a multiple of 64.
TANDEM_EMULATED __m512i _mm512_load_si512(const void* from) {
  if (reinterpret_cast<uintptr_t>(from) % sizeof(__m512i) != 0) __builtin_trap();
  return _mm512_loadu_si512(from);
}
TANDEM_EMULATED void _mm512_storeu_ps(void* to, __m512 a) { std::memcpy(to, &a, sizeof(a)); }
TANDEM_EMULATED void _mm512_storeu_si512(void* to, __m512i a) { std::memcpy(to, &a, sizeof(a)); }
TANDEM_EMULATED __m512i _mm512_i32gather_epi32(__m512i index, const void* from, int scale) {
  const auto offsets = simd_emulation::Lanes<int32_t>(index);
  return simd_emulation::FromLanes<__m512i, int32_t>([&](size_t i) {
    int32_t word;
    std::memcpy(&word, static_cast<const char*>(from) + int64_t{offsets[i]} * scale, sizeof(word));
    return word;
  });
}

// --- constants ---
TANDEM_EMULATED __m512 _mm512_setzero_ps() { return __m512{}; }
TANDEM_EMULATED __m512i _mm512_setzero_si512() { return __m512i{}; }
TANDEM_EMULATED __m512 _mm512_set1_ps(float x) {
  return simd_emulation::FromLanes<__m512, float>([x](size_t) { return x; });
}
TANDEM_EMULATED __m512i _mm512_set1_epi8(char x) { return simd_emulation::AllLanes(x); }
TANDEM_EMULATED __m512i _mm512_set1_epi16(short x) { return simd_emulation::AllLanes(x); }
TANDEM_EMULATED __m512i _mm512_set1_epi32(int x) { return simd_emulation::AllLanes(x); }
TANDEM_EMULATED __m512i _mm512_set4_epi32(int d, int c, int b, int a) {
  const std::array<int, 4> four = {a, b, c, d};
  return simd_emulation::FromLanes<__m512i, int>([&](size_t i) { return four[i % 4]; });
}
template <class... Ints>
TANDEM_EMULATED __m512i _mm512_setr_epi32(Ints... lanes) {
  static_assert(sizeof...(lanes) == 16);
  return std::bit_cast<__m512i>(std::array<int, 16>{lanes...});
}
TANDEM_EMULATED __m512i _mm512_broadcast_i32x4(__m128i a) {
  return std::bit_cast<__m512i>(std::array<__m128i, 4>{a, a, a, a});
}

// --- casts ---
TANDEM_EMULATED __m512 _mm512_castsi512_ps(__m512i a) { return std::bit_cast<__m512>(a); }
TANDEM_EMULATED __m512i _mm512_castps_si512(__m512 a) { return std::bit_cast<__m512i>(a); }
TANDEM_EMULATED __m512d _mm512_castps_pd(__m512 a) { return std::bit_cast<__m512d>(a); }
TANDEM_EMULATED __m512 _mm512_castpd_ps(__m512d a) { return std::bit_cast<__m512>(a); }
// The other parts are anything: here no zeros, so that a use of them shows.
TANDEM_EMULATED __m512i _mm512_castsi256_si512(__m256i a) {
  return std::bit_cast<__m512i>(simd_emulation::Halves<__m512i>{a, ~a});
}
TANDEM_EMULATED __m512i _mm512_castsi128_si512(__m128i a) {
  return std::bit_cast<__m512i>(std::array<__m128i, 4>{a, ~a, ~a, ~a});
}
TANDEM_EMULATED __m512i _mm512_inserti64x4(__m512i a, __m256i half, int at) {
  auto halves = std::bit_cast<simd_emulation::Halves<__m512i>>(a);
  halves[static_cast<size_t>(at)] = half;
  return std::bit_cast<__m512i>(halves);
}
TANDEM_EMULATED __m512i _mm512_inserti32x4(__m512i a, __m128i quarter, int at) {
  auto quarters = std::bit_cast<std::array<__m128i, 4>>(a);
  quarters[static_cast<size_t>(at)] = quarter;
  return std::bit_cast<__m512i>(quarters);
}
TANDEM_EMULATED __m256i _mm512_extracti64x4_epi64(__m512i a, int at) {
  return std::bit_cast<simd_emulation::Halves<__m512i>>(a)[static_cast<size_t>(at)];
}
TANDEM_EMULATED __m256i _mm512_castsi512_si256(__m512i a) {
  return _mm512_extracti64x4_epi64(a, 0);
}

// --- within quarters ---
TANDEM_BY_HALVES(__m512i, shuffle_epi8)
TANDEM_BY_HALVES(__m512i, unpacklo_epi8)
TANDEM_BY_HALVES(__m512i, unpackhi_epi8)
TANDEM_BY_HALVES(__m512i, unpacklo_epi16)
TANDEM_BY_HALVES(__m512i, unpackhi_epi16)
TANDEM_BY_HALVES(__m512i, unpacklo_epi32)
TANDEM_BY_HALVES(__m512i, unpackhi_epi32)
TANDEM_BY_HALVES(__m512i, unpacklo_epi64)
TANDEM_BY_HALVES(__m512i, unpackhi_epi64)
TANDEM_BY_HALVES(__m512, unpacklo_ps)
TANDEM_BY_HALVES(__m512, unpackhi_ps)
TANDEM_EMULATED __m512d _mm512_unpacklo_pd(__m512d a, __m512d b) {
  return std::bit_cast<__m512d>(
      _mm512_unpacklo_epi64(std::bit_cast<__m512i>(a), std::bit_cast<__m512i>(b)));
}
TANDEM_EMULATED __m512d _mm512_unpackhi_pd(__m512d a, __m512d b) {
  return std::bit_cast<__m512d>(
      _mm512_unpackhi_epi64(std::bit_cast<__m512i>(a), std::bit_cast<__m512i>(b)));
}
// Two lanes of each quarter of a, then two of b, each chosen by two bits.
TANDEM_EMULATED __m512 _mm512_shuffle_ps(__m512 a, __m512 b, int choice) {
  return simd_emulation::FromLanes<__m512, float>([&](size_t i) {
    const size_t from = i / 4 * 4 + static_cast<size_t>(choice >> 2 * (i % 4) & 3);
    return i % 4 < 2 ? a[from] : b[from];
  });
}

// --- across quarters ---
TANDEM_EMULATED __m512 _mm512_shuffle_f32x4(__m512 a, __m512 b, int choice) {
  return simd_emulation::ShuffledQuarters(a, b, choice);
}
TANDEM_EMULATED __m512i _mm512_shuffle_i64x2(__m512i a, __m512i b, int choice) {
  return simd_emulation::ShuffledQuarters(a, b, choice);
}
TANDEM_EMULATED __m512i _mm512_permutexvar_epi8(__m512i index, __m512i a) {
  simd_emulation::NeedVbmi();
  return simd_emulation::Permuted<uint8_t>(a, index, a);
}
TANDEM_EMULATED __m512i _mm512_permutex2var_epi8(__m512i a, __m512i index, __m512i b) {
  simd_emulation::NeedVbmi();
  return simd_emulation::Permuted<uint8_t>(a, index, b);
}
TANDEM_EMULATED __m512 _mm512_permutex2var_ps(__m512 a, __m512i index, __m512 b) {
  return simd_emulation::Permuted<uint32_t>(a, index, b);
}
// Set lanes moved to the front, zeros after.
TANDEM_EMULATED __m512 _mm512_maskz_compress_ps(__mmask16 mask, __m512 a) {
  std::array<float, 16> front = {};
  size_t n = 0;
  for (size_t i = 0; i < front.size(); ++i) {
    if (simd_emulation::IsSet(mask, i)) front[n++] = a[i];
  }
  return std::bit_cast<__m512>(front);
}

}  // namespace tandem

#endif  // TANDEM_TOOLS_SIMD_EMULATION_MOVES_H_
