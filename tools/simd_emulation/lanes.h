// How 512-bit vectors are taken apart: into halves, for which AVX2 has an instruction, and lanes.
#ifndef TANDEM_TOOLS_SIMD_EMULATION_LANES_H_
#define TANDEM_TOOLS_SIMD_EMULATION_LANES_H_

#include <array>
#include <bit>
#include <compiler_immintrin.inc>
#include <cstddef>
#include <cstdint>

// Calls: inlined, tiles of a hundred vectors would take minutes to compile.
#define TANDEM_EMULATED [[maybe_unused, gnu::noinline]] static

namespace tandem::simd_emulation {

template <class Vector>
struct HalfOf;
template <>
struct HalfOf<__m512> {
  using Type = __m256;
};
template <>
struct HalfOf<__m512i> {
  using Type = __m256i;
};
template <class Vector>
using Halves = std::array<typename HalfOf<Vector>::Type, 2>;

// `op` on the first and on the second halves of vectors.
template <class To, class Op, class... From>
inline To OnHalves(Op op, From... from) {
  return std::bit_cast<To>(Halves<To>{op(std::bit_cast<Halves<From>>(from)[0]...),
                                      op(std::bit_cast<Halves<From>>(from)[1]...)});
}

// The lanes of a vector as numbers: Lanes<uint8_t>(v)[i].
template <class T, class Vector>
inline auto Lanes(Vector v) {
  return std::bit_cast<std::array<T, sizeof(Vector) / sizeof(T)>>(v);
}

// A vector of `f(i)` for every lane i.
template <class Vector, class T, class F>
inline Vector FromLanes(F f) {
  std::array<T, sizeof(Vector) / sizeof(T)> lanes;
  for (size_t i = 0; i < lanes.size(); ++i) lanes[i] = static_cast<T>(f(i));
  return std::bit_cast<Vector>(lanes);
}

// A mask with bit i set where `f(i)`.
template <class Mask, class F>
inline Mask MaskOf(F f) {
  Mask mask = 0;
  for (size_t i = 0; i < 8 * sizeof(Mask); ++i) mask |= static_cast<Mask>(Mask{f(i)} << i);
  return mask;
}
template <class Mask>
inline bool IsSet(Mask mask, size_t i) {
  return (mask >> i & 1) != 0;
}

}  // namespace tandem::simd_emulation

// An intrinsic of two vectors whose halves do not meet, by that of AVX2.
#define TANDEM_BY_HALVES(Vector, name)                                                             \
  TANDEM_EMULATED Vector _mm512_##name(Vector a, Vector b) {                                       \
    return simd_emulation::OnHalves<Vector>([](auto x, auto y) { return _mm256_##name(x, y); }, a, \
                                            b);                                                    \
  }
// The same of a shift of all lanes by as many bits.
#define TANDEM_SHIFT_BY_HALVES(name)                                                               \
  TANDEM_EMULATED __m512i _mm512_##name(__m512i a, int bits) {                                     \
    return simd_emulation::OnHalves<__m512i>([bits](__m256i x) { return _mm256_##name(x, bits); }, \
                                             a);                                                   \
  }

#endif  // TANDEM_TOOLS_SIMD_EMULATION_LANES_H_
