// Weights of a block-quantised type as pairs of BF16 numbers, straight from their codes: the
// integer is exact, scale and minimum are rounded to BF16, and so is the weight, once.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_BF16_WEIGHTS_H_
#define TANDEM_KERNELS_CUDA_DEVICE_BF16_WEIGHTS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "common/tensor/type.h"
#include "kernels/cuda/device/blocks.h"
#include "kernels/cuda/device/numbers.h"

namespace tandem::kernels::cuda {

// a * b + c of two BF16 numbers each, rounded once (under emulation to float first).
#ifdef TANDEM_CUDA_EMULATION
inline uint32_t MultiplyAddBf16(uint32_t a, uint32_t b, uint32_t c) {
  const auto half = [&](uint32_t shift) {
    const auto of = [&](uint32_t pair) {
      return Bf16ToFloat(static_cast<uint16_t>(pair >> shift));
    };
    return FloatToBf16(of(a) * of(b) + of(c));  // the product of two 8-bit fractions is exact
  };
  return Pack(half(0), half(16));
}
#else
__device__ __forceinline__ uint32_t MultiplyAddBf16(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}
#endif

// What the codes of a group become: both numbers of a pair are the same. [1]: of the second 16
// weights, if the format has kHalves.
template <tensor::Type kType>
struct Bf16Scales {
  static constexpr int kParts = Format<kType>::kHalves ? 2 : 1;

  Bf16Scales() = default;
  __device__ __forceinline__ explicit Bf16Scales(const GroupScales& scales) {
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      scale[i] = FloatsToBf16(scales.scale[i], scales.scale[i]);
      if constexpr (Format<kType>::kHasMin) {
        minus_min[i] = FloatsToBf16(-scales.min[i], -scales.min[i]);
      } else {
        minus_min[i] = 0x80008000u;  // -0: a product keeps its sign
      }
    }
  }

  uint32_t scale[kParts];
  uint32_t minus_min[kParts];
};

// Four codes less their offset as two pairs. A byte below 128 in the low bits of the BF16 number
// 128 makes it 128 + byte.
template <tensor::Type kType>
__device__ __forceinline__ uint2 CodesToBf16(uint32_t codes) {
  using F = Format<kType>;
  constexpr uint32_t kOnes = 0x3f803f80u, k128 = 0x43434343u, kMinus128 = 0xc3c3c3c3u;
  constexpr uint32_t kFirst = 0x4140, kSecond = 0x4342;  // bytes 0 and 1, 2 and 3, below the others
  if constexpr (F::kOffset == 0 && !F::kHasMin) {
    // Signed: the top bit makes -128 of the subtracted 128 -256.
    const uint32_t low = codes & 0x7f7f7f7fu, sign = codes & 0x80808080u;
    return make_uint2(MultiplyAddBf16(__byte_perm(low, k128, kFirst), kOnes,
                                      __byte_perm(sign, kMinus128, kFirst)),
                      MultiplyAddBf16(__byte_perm(low, k128, kSecond), kOnes,
                                      __byte_perm(sign, kMinus128, kSecond)));
  } else {
    constexpr uint32_t kLess = (0xc300u + F::kOffset) * 0x00010001u;  // -(128 + offset)
    return make_uint2(MultiplyAddBf16(__byte_perm(codes, k128, kFirst), kOnes, kLess),
                      MultiplyAddBf16(__byte_perm(codes, k128, kSecond), kOnes, kLess));
  }
}

// Weights [8 part, 8 part + 8) of a group.
template <tensor::Type kType>
__device__ __forceinline__ void ToBf16(const uint32_t (&codes)[8], const Bf16Scales<kType>& scales,
                                       int part, uint32_t (&pairs)[4]) {
  const int half = Format<kType>::kHalves ? part / 2 : 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint2 integers = CodesToBf16<kType>(codes[2 * part + i]);
    pairs[2 * i] = MultiplyAddBf16(integers.x, scales.scale[half], scales.minus_min[half]);
    pairs[2 * i + 1] = MultiplyAddBf16(integers.y, scales.scale[half], scales.minus_min[half]);
  }
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_BF16_WEIGHTS_H_
