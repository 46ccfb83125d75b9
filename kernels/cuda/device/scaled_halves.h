// Four signed bytes times an F16 scale, as F16: only the product is rounded.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_SCALED_HALVES_H_
#define TANDEM_KERNELS_CUDA_DEVICE_SCALED_HALVES_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/numbers.h"

namespace tandem::kernels::cuda {

#ifdef TANDEM_CUDA_EMULATION

// The lowest byte first, in the low half of x.
inline uint2 ScaledHalves(uint32_t bytes, uint16_t scale) {
  uint16_t halves[4];
  for (uint32_t i = 0; i < 4; ++i) {
    const auto value = static_cast<int8_t>(bytes >> (8 * i) & 0xff);
    halves[i] = FloatToHalf(static_cast<float>(value) * HalfToFloat(scale));
  }
  return make_uint2(Pack(halves[0], halves[1]), Pack(halves[2], halves[3]));
}

#else

__device__ inline uint2 ScaledHalves(uint32_t bytes, uint16_t scale) {
  // A byte u in the low bits of the F16 number 1024 makes it 1024 + u.
  const uint32_t shifted = bytes ^ 0x80808080u;  // value + 128
  const uint32_t raw[2] = {__byte_perm(shifted, 0x64646464u, 0x4140),
                           __byte_perm(shifted, 0x64646464u, 0x4342)};
  const __half2 offset = __half2half2(__ushort_as_half(0x6480));  // 1024 + 128
  const __half2 factor = __half2half2(__ushort_as_half(scale));
  uint32_t result[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const __half2 biased = __halves2half2(__ushort_as_half(static_cast<uint16_t>(raw[i])),
                                          __ushort_as_half(static_cast<uint16_t>(raw[i] >> 16)));
    const __half2 scaled = __hmul2(__hsub2(biased, offset), factor);
    result[i] = Pack(__half_as_ushort(__low2half(scaled)), __half_as_ushort(__high2half(scaled)));
  }
  return make_uint2(result[0], result[1]);
}

#endif

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_SCALED_HALVES_H_
