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

// exp(x) for x <= 0, error below 2e-7, relative error below 3e-7 + 8e-8 |x|; 1 at 0, 0 below -87
// and for NaN. With x / ln 2 = n + r, |r| <= 1/2, 2^n times a polynomial of fifth degree whose
// largest relative error is the least among those with 1 at 0.
__device__ inline float ExpOfNegative(float x) {
  const float magic = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
  const float clamped = x >= -87.0f ? x : -87.0f;
  const float t = __fmul_rn(clamped, 1.44269504f);
  const float shifted = __fadd_rn(t, magic);
  const float r = __fadd_rn(t, -__fadd_rn(shifted, -magic));
  const float r2 = __fmul_rn(r, r);
  const float high = MultiplyAdd(MultiplyAdd(1.32647273e-3f, r, 9.67151299e-3f), r2,
                                 MultiplyAdd(5.55073358e-2f, r, 0.240222424f));
  const float p = MultiplyAdd(high, r2, MultiplyAdd(0.693147004f, r, 1.0f));
  // The low nine bits of `magic` are zeros.
  const uint32_t exponent = __float_as_uint(shifted) << 23;
  const float result = __uint_as_float(__float_as_uint(p) + exponent);
  return x >= -87.0f ? result : 0.0f;
}

// ln(x) for normal x in (0, 1], relative error below 2e-7. Coefficients: Cephes, logf (S. Moshier).
__device__ inline float LogOfWeight(float x) {
  const uint32_t bits = __float_as_uint(x);
  float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 126);
  float m = __uint_as_float((bits & 0x7fffffu) | 0x3f000000u);  // in [0.5, 1)
  const bool small = m < 0.70710678f;
  m = small ? __fadd_rn(__fadd_rn(m, m), -1.0f) : __fadd_rn(m, -1.0f);
  e = small ? __fadd_rn(e, -1.0f) : e;
  float p = 7.0376836e-2f;
  p = MultiplyAdd(p, m, -1.1514610e-1f);
  p = MultiplyAdd(p, m, 1.1676999e-1f);
  p = MultiplyAdd(p, m, -1.2420141e-1f);
  p = MultiplyAdd(p, m, 1.4249323e-1f);
  p = MultiplyAdd(p, m, -1.6668058e-1f);
  p = MultiplyAdd(p, m, 2.0000715e-1f);
  p = MultiplyAdd(p, m, -2.4999994e-1f);
  p = MultiplyAdd(p, m, 3.3333331e-1f);
  const float square = __fmul_rn(m, m);
  float low = __fmul_rn(__fmul_rn(p, m), square);
  low = MultiplyAdd(e, -2.12194440e-4f, low);
  low = MultiplyAdd(square, -0.5f, low);
  return MultiplyAdd(e, 0.693359375f, __fadd_rn(m, low));
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
