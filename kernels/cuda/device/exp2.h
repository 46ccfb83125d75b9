// 2^x to about 22 bits, by one instruction; results below 2^-126 are zeros.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_EXP2_H_
#define TANDEM_KERNELS_CUDA_DEVICE_EXP2_H_

#include <cuda_runtime.h>

#ifdef TANDEM_CUDA_EMULATION
#include <cmath>
#endif

namespace tandem::kernels::cuda {

#ifdef TANDEM_CUDA_EMULATION

inline float FastExp2(float x) { return x < -126.0f ? 0.0f : std::exp2(x); }

#else

__device__ __forceinline__ float FastExp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

#endif

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_EXP2_H_
