// Arithmetic of Sample and LogProbs on a logit, bit-identical to the host
// (kernels/host/logits_row.h): every product and sum is rounded separately.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_LOGITS_H_
#define TANDEM_KERNELS_CUDA_DEVICE_LOGITS_H_

#include <cuda_runtime.h>

#include <cstdint>

namespace tandem::kernels::cuda {

__device__ inline float MultiplyAdd(float a, float b, float c) {
  return __fadd_rn(__fmul_rn(a, b), c);
}

// exp(x) for x <= 0, relative error below 2e-7; 0 below -87 and for NaN. 2^n times a polynomial on
// |r| <= ln(2) / 2.
__device__ inline float ExpOfNegative(float x) {
  const float magic = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
  const float clamped = x >= -87.0f ? x : -87.0f;
  const float shifted = MultiplyAdd(clamped, 1.44269504f, magic);
  const float n = __fadd_rn(shifted, -magic);
  const float r = MultiplyAdd(n, 2.12194440e-4f, MultiplyAdd(n, -0.693359375f, clamped));
  float p = 1.0f / 5040;
  p = MultiplyAdd(p, r, 1.0f / 720);
  p = MultiplyAdd(p, r, 1.0f / 120);
  p = MultiplyAdd(p, r, 1.0f / 24);
  p = MultiplyAdd(p, r, 1.0f / 6);
  p = MultiplyAdd(p, r, 0.5f);
  p = MultiplyAdd(p, r, 1.0f);
  p = MultiplyAdd(p, r, 1.0f);
  const uint32_t exponent = (__float_as_uint(shifted) - __float_as_uint(magic)) << 23;
  const float result = __uint_as_float(__float_as_uint(p) + exponent);
  return x >= -87.0f ? result : 0.0f;
}

// Bits that order as the floats do; NaN counts as -inf, and both zeros are equal.
__device__ inline uint32_t OrderedBits(float x) {
  const uint32_t bits = __float_as_uint(__fadd_rn(x == x ? x : -INFINITY, 0.0f));
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

// The float of such bits.
__device__ inline float OfOrderedBits(uint32_t bits) {
  return __uint_as_float((bits >> 31) != 0 ? bits & 0x7fffffffu : ~bits);
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_LOGITS_H_
