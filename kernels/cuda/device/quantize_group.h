// Rounding to Int8Group: device code of all kernels whose rows a product reads in bytes.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_QUANTIZE_GROUP_H_
#define TANDEM_KERNELS_CUDA_DEVICE_QUANTIZE_GROUP_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/int8_group.h"
#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kLanesPerGroup = 8;

// Eight consecutive lanes, each with four of a group's values, in order, write the group to `out`;
// null: nowhere. All lanes of the warp call it.
//
// Scale = largest magnitude / 127, bytes rounded to nearest, ties to even; a group below 2^-100 is
// all zeros; one with a NaN or an infinity has the scale NaN.
__device__ __forceinline__ void QuantizeGroup(const float (&values)[4], Int8Group* out) {
  constexpr uint32_t kNotFinite = 0x7f800000u;
  const uint32_t lane = threadIdx.x % kLanesPerGroup;
  uint32_t largest = 0;  // bits of a magnitude, which order like it; infinities and NaNs last
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    largest = max(largest, __float_as_uint(values[i]) & 0x7fffffffu);
  }
  largest = LanesReduce<kLanesPerGroup>(largest, MaxOp());
  const float magnitude = __uint_as_float(largest);
  const bool usable = largest < kNotFinite && magnitude >= 0x1p-100f;
  const float inverse = usable ? 127.0f / magnitude : 0.0f;
  uint32_t packed = 0;
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int q = usable ? __float2int_rn(values[i] * inverse) : 0;
    packed |= (static_cast<uint32_t>(q) & 0xff) << (8 * i);
    sum += q;
  }
  sum = LanesReduce<kLanesPerGroup / 2>(sum, AddOp());  // of 16 values
  const int high = __shfl_xor_sync(kAllLanes, sum, kLanesPerGroup / 2);
  if (out == nullptr) return;
  out->q[lane] = static_cast<int>(packed);
  if (lane != 0) return;
  out->scale = largest >= kNotFinite ? __uint_as_float(0x7fc00000u)
               : usable              ? magnitude / 127.0f
                                     : 0.0f;
  out->sum_low = sum;
  out->sum_high = high;
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_QUANTIZE_GROUP_H_
