// Runs of floats stored as BF16, rounded to nearest, ties to even.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_STORE_BF16_H_
#define TANDEM_KERNELS_CUDA_DEVICE_STORE_BF16_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/floats.h"
#include "kernels/cuda/device/numbers.h"

namespace tandem::kernels::cuda {

// A run of four is one access of 8 bytes.
__device__ inline void StoreBf16(uint16_t* to, const Floats<4>& values) {
  *reinterpret_cast<uint2*>(to) =
      make_uint2(Pack(FloatToBf16(values.at[0]), FloatToBf16(values.at[1])),
                 Pack(FloatToBf16(values.at[2]), FloatToBf16(values.at[3])));
}
__device__ inline void StoreBf16(uint16_t* to, const Floats<1>& value) {
  *to = FloatToBf16(value.at[0]);
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_STORE_BF16_H_
