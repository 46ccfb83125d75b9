// Rounding to Int8Group: device code of all kernels whose rows a product reads in bytes.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_QUANTIZE_GROUP_H_
#define TANDEM_KERNELS_CUDA_DEVICE_QUANTIZE_GROUP_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/int8_group.h"
#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kLanesPerGroup = 8;

// Bits of a magnitude, which order like it; infinities and NaNs last.
__device__ __forceinline__ uint32_t MagnitudeBits(float value) {
  return __float_as_uint(value) & 0x7fffffffu;
}

// How the values of a group are rounded, by the bits of its largest magnitude. Scale = largest
// magnitude / 127, bytes rounded to nearest, ties to even; a group below 2^-100 is all zeros; one
// with a NaN or an infinity has the scale NaN.
struct GroupRounding {
  float magnitude;
  bool finite;
  bool usable;
  float inverse;

  __device__ __forceinline__ static GroupRounding Of(uint32_t largest) {
    GroupRounding rounding;
    rounding.magnitude = __uint_as_float(largest);
    rounding.finite = largest < 0x7f800000u;
    rounding.usable = rounding.finite && rounding.magnitude >= 0x1p-100f;
    rounding.inverse = rounding.usable ? 127.0f / rounding.magnitude : 0.0f;
    return rounding;
  }
  __device__ __forceinline__ int Byte(float value) const {
    return usable ? __float2int_rn(value * inverse) : 0;
  }
  __device__ __forceinline__ float scale() const {
    return !finite ? __uint_as_float(0x7fc00000u) : usable ? magnitude / 127.0f : 0.0f;
  }
};

// Eight consecutive lanes, each with four of a group's values, in order, write the group to `out`;
// null: nowhere. All lanes of the warp call it.
__device__ __forceinline__ void QuantizeGroup(const float (&values)[4], Int8Group* out) {
  const uint32_t lane = threadIdx.x % kLanesPerGroup;
  uint32_t largest = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) largest = max(largest, MagnitudeBits(values[i]));
  const auto rounding = GroupRounding::Of(LanesReduce<kLanesPerGroup>(largest, MaxOp()));
  uint32_t packed = 0;
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int q = rounding.Byte(values[i]);
    packed |= (static_cast<uint32_t>(q) & 0xff) << (8 * i);
    sum += q;
  }
  sum = LanesReduce<kLanesPerGroup / 2>(sum, AddOp());  // of 16 values
  const int high = __shfl_xor_sync(kAllLanes, sum, kLanesPerGroup / 2);
  if (out == nullptr) return;
  out->q[lane] = static_cast<int>(packed);
  if (lane != 0) return;
  out->scale = rounding.scale();
  out->sum_low = sum;
  out->sum_high = high;
}

// The same by a whole warp, each lane with one value.
__device__ __forceinline__ void QuantizeGroupOfWarp(float value, Int8Group* out) {
  const uint32_t lane = threadIdx.x % kWarp;
  const auto rounding = GroupRounding::Of(WarpMax(MagnitudeBits(value)));
  const int q = rounding.Byte(value);
  const int sum = LanesReduce<kWarp / 2>(q, AddOp());  // of 16 values
  const int high = __shfl_xor_sync(kAllLanes, sum, kWarp / 2);
  reinterpret_cast<signed char*>(out->q)[lane] = static_cast<signed char>(q);
  if (lane != 0) return;
  out->scale = rounding.scale();
  out->sum_low = sum;
  out->sum_high = high;
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_QUANTIZE_GROUP_H_
