// IEEE half precision and bfloat16 as raw bits, to and from float: exact both ways, subnormals
// included.
//
// Scalar on purpose: the reference that vector code is compared with. Rounding is to nearest, ties
// to even. Source: IEEE 754-2019, binary16; bfloat16 is the upper half of a binary32.
#ifndef TANDEM_COMMON_TENSOR_F16_H_
#define TANDEM_COMMON_TENSOR_F16_H_

#include <bit>
#include <cstdint>

namespace tandem::tensor {

// Exact: every half is a float. NaN keeps its payload.
inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  // Zero or subnormal: mantissa * 2^-24, which a float holds exactly.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

// Nearest half, ties to even. Too large becomes infinity; NaN stays NaN.
inline uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x3ff));
  }
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00);  // 65520 and above
  if (magnitude < 0x38800000u) {  // below 2^-14: a subnormal half
    // Adding 0.5 shifts the value to where a float's last bit weighs 2^-24, so the FPU rounds for
    // us.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

// Exact.
inline float Bf16ToFloat(uint16_t bf16) {
  return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16);
}

// Nearest bfloat16, ties to even; NaN stays NaN.
inline uint16_t FloatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_F16_H_
