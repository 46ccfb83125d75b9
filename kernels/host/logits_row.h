// Shared by Sample and LogProbs: the largest logit of a row, and exponentials relative to it. Loops
// over whole vocabularies, written to be vectorised; for the host backends.
#ifndef TANDEM_KERNELS_HOST_LOGITS_ROW_H_
#define TANDEM_KERNELS_HOST_LOGITS_ROW_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace tandem::kernels::host {

inline constexpr float kNever = -std::numeric_limits<float>::infinity();

// The largest of n floats, ignoring NaNs; kNever if there is none. Written in lanes to be
// vectorised.
inline float Largest(const float* x, size_t n) {
  constexpr size_t kLanes = 16;
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, kNever);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
  }
  float largest = kNever;
  for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  for (float lane : lanes) largest = std::max(largest, lane);
  return largest;
}

// exp(x) for x <= 0, error below 2e-7, relative error below 3e-7 + 8e-8 |x|; 1 at 0, 0 below -87
// and for NaN. With x / ln 2 = n + r, |r| <= 1/2, 2^n times a polynomial of fifth degree whose
// largest relative error is the least among those with 1 at 0, added in pairs: a chain of six
// roundings, not fourteen. Always inlined: the loops of several instruction sets use it.
[[gnu::always_inline]] inline float ExpOfNegative(float x) {
  const float magic = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
  const float clamped = x >= -87.0f ? x : -87.0f;
  const float t = clamped * 1.44269504f;
  const float shifted = t + magic;
  const float r = t - (shifted - magic);
  const float r2 = r * r;
  const float high =
      (1.32647273e-3f * r + 9.67151299e-3f) * r2 + (5.55073358e-2f * r + 0.240222424f);
  const float p = high * r2 + (0.693147004f * r + 1.0f);
  // The low nine bits of `magic` are zeros.
  const uint32_t exponent = __builtin_bit_cast(uint32_t, shifted) << 23;
  const float result = __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, p) + exponent);
  return x >= -87.0f ? result : 0.0f;
}

// ln(x) for normal x in (0, 1], relative error below 2e-7. Coefficients: Cephes, logf (S. Moshier).
inline float LogOfWeight(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 126);
  float m = std::bit_cast<float>((bits & 0x7fffffu) | 0x3f000000u);  // in [0.5, 1)
  const bool small = m < 0.70710678f;
  m = small ? m + m - 1.0f : m - 1.0f;
  e = small ? e - 1.0f : e;
  float p = 7.0376836e-2f;
  p = p * m + -1.1514610e-1f;
  p = p * m + 1.1676999e-1f;
  p = p * m + -1.2420141e-1f;
  p = p * m + 1.4249323e-1f;
  p = p * m + -1.6668058e-1f;
  p = p * m + 2.0000715e-1f;
  p = p * m + -2.4999994e-1f;
  p = p * m + 3.3333331e-1f;
  const float square = m * m;
  float low = (p * m) * square;
  low = e * -2.12194440e-4f + low;
  low = square * -0.5f + low;
  return e * 0.693359375f + (m + low);
}

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_LOGITS_ROW_H_
