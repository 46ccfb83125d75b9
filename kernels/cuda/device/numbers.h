// Conversion of F16 and BF16 bits, as stored in GGUF blocks and KV pages, to float (exact) and from
// float (to nearest, ties to even).
#ifndef TANDEM_KERNELS_CUDA_DEVICE_NUMBERS_H_
#define TANDEM_KERNELS_CUDA_DEVICE_NUMBERS_H_

#include <cuda_runtime.h>

#include <cstdint>

#ifdef TANDEM_CUDA_EMULATION
#include "common/tensor/f16.h"
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace tandem::kernels::cuda {

#ifdef TANDEM_CUDA_EMULATION

inline float HalfToFloat(uint16_t half) { return tensor::HalfToFloat(half); }
inline uint16_t FloatToHalf(float value) { return tensor::FloatToHalf(value); }
inline uint16_t FloatToBf16(float value) { return tensor::FloatToBf16(value); }
inline uint32_t FloatsToBf16(float low, float high) {
  return FloatToBf16(low) | static_cast<uint32_t>(FloatToBf16(high)) << 16;
}

#else

__device__ inline float HalfToFloat(uint16_t half) { return __half2float(__ushort_as_half(half)); }
__device__ inline uint16_t FloatToHalf(float value) {
  return __half_as_ushort(__float2half_rn(value));
}
__device__ inline uint16_t FloatToBf16(float value) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}
// Both in one instruction, the first in the low half.
__device__ inline uint32_t FloatsToBf16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

#endif

__device__ inline float Bf16ToFloat(uint16_t bits) {
  return __uint_as_float(static_cast<uint32_t>(bits) << 16);
}

// Two 16-bit values in one register, the first in the low half.
__device__ inline uint32_t Pack(uint16_t low, uint16_t high) {
  return static_cast<uint32_t>(low) | static_cast<uint32_t>(high) << 16;
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_NUMBERS_H_
