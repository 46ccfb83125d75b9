// The keywords and functions of CUDA C++ used by Tandem's kernels, for a plain C++ compiler.
// Semantics follow the CUDA C++ Programming Guide, chapter 10 ("C++ Language Extensions"), and of
// the CUDA Math API.
//
// Warp functions require all 32 lanes: another mask ends the kernel with an error.
#ifndef TANDEM_TOOLS_CUDA_EMULATION_LANGUAGE_H_
#define TANDEM_TOOLS_CUDA_EMULATION_LANGUAGE_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tools/cuda_emulation/builtins.h"
#include "tools/cuda_emulation/execution.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

// --- barriers and warps ---
inline void __syncthreads() { tandem::emulation::SyncBlock(); }

namespace tandem::emulation {

inline void WantAllLanes(unsigned mask) {
  if (mask != 0xffffffffu) Fail("a warp function with a mask of some lanes");
}

template <typename T>
uint64_t ToBits(T value) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// The value passed by lane `source`.
template <typename T>
T FromLane(unsigned mask, T value, unsigned source) {
  WantAllLanes(mask);
  const uint64_t bits = ExchangeInWarp(ToBits(value))[source];
  T result;
  std::memcpy(&result, &bits, sizeof(T));
  return result;
}

}  // namespace tandem::emulation

inline void __syncwarp(unsigned mask = 0xffffffffu) {
  tandem::emulation::WantAllLanes(mask);
  tandem::emulation::SyncWarp();
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  const unsigned me = tandem::emulation::Lane();
  const unsigned base = me / width * width;
  return tandem::emulation::FromLane(mask, value, base + static_cast<unsigned>(lane) % width);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  const unsigned me = tandem::emulation::Lane();
  const unsigned from = me ^ static_cast<unsigned>(lane_mask);
  return tandem::emulation::FromLane(mask, value, from / width == me / width ? from : me);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned me = tandem::emulation::Lane();
  const unsigned from = me + delta;
  return tandem::emulation::FromLane(mask, value, from / width == me / width ? from : me);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned me = tandem::emulation::Lane();
  return tandem::emulation::FromLane(mask, value, me % width >= delta ? me - delta : me);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  tandem::emulation::WantAllLanes(mask);
  const auto& given = tandem::emulation::ExchangeInWarp(predicate != 0 ? 1 : 0);
  unsigned ballot = 0;
  for (unsigned lane = 0; lane < 32; ++lane) ballot |= static_cast<unsigned>(given[lane]) << lane;
  return ballot;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) == 0xffffffffu;
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value) {
  tandem::emulation::WantAllLanes(mask);
  uint64_t result = 0;
  for (const uint64_t given : tandem::emulation::ExchangeInWarp(value)) {
    if (given > result) result = given;
  }
  return static_cast<unsigned>(result);
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value) {
  return ~__reduce_max_sync(mask, ~value);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

// --- atomics in global memory: threads run one at a time ---
template <typename T>
T atomicAdd(T* address, T value) {
  const T old = *address;
  *address = old + value;
  return old;
}
template <typename T>
T atomicMax(T* address, T value) {
  const T old = *address;
  *address = old > value ? old : value;
  return old;
}
template <typename T>
T atomicMin(T* address, T value) {
  const T old = *address;
  *address = old < value ? old : value;
  return old;
}
template <typename T>
T atomicExch(T* address, T value) {
  const T old = *address;
  *address = value;
  return old;
}
template <typename T>
T atomicCAS(T* address, T compare, T value) {
  const T old = *address;
  if (old == compare) *address = value;
  return old;
}

// --- numbers ---
template <typename T>
T __ldg(const T* address) {
  return *address;
}
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __ffs(int x) { return x == 0 ? 0 : 1 + std::countr_zero(static_cast<unsigned>(x)); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((uint64_t{a} * b) >> 32);
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) {
    c += static_cast<int>(static_cast<int8_t>(a >> (8 * i))) * static_cast<int8_t>(b >> (8 * i));
  }
  return c;
}
// Byte i of the result is byte (selector >> 4 i) & 7 of the eight of a and b; bit 3 of a selector,
// which would spread that byte's sign, is not used.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = a | static_cast<uint64_t>(b) << 32;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned from = (selector >> (4 * i)) & 15;
    if (from > 7) tandem::emulation::Fail("__byte_perm: a selector with bit 3");
    result |= static_cast<unsigned>((bytes >> (8 * from)) & 0xff) << (8 * i);
  }
  return result;
}
// The low word of high:low shifted right by shift % 32.
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((low | static_cast<uint64_t>(high) << 32) >> (shift % 32));
}
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
// CUDA Programming Guide, intrinsic functions: 0 for divisors from 2^126 to 2^128, NaN if a is
// infinite there.
inline float __fdividef(float a, float b) {
  const float size = std::fabs(b);
  return size > 0x1p126f && !std::isinf(size) ? a * 0.0f : a / b;
}
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fmul_rn(float a, float b) {
  const volatile float product = a * b;
  return product;
}
inline void sincospif(float x, float* sine, float* cosine) {
  const double angle = double{x} * M_PI;
  *sine = static_cast<float>(std::sin(angle));
  *cosine = static_cast<float>(std::cos(angle));
}
inline float __fadd_rn(float a, float b) { return a + b; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }

#endif  // TANDEM_TOOLS_CUDA_EMULATION_LANGUAGE_H_
