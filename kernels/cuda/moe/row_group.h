// 32 neighbouring weights of a row, dequantised eight at a time to BF16.
#ifndef TANDEM_KERNELS_CUDA_MOE_ROW_GROUP_H_
#define TANDEM_KERNELS_CUDA_MOE_ROW_GROUP_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/blocks.h"
#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/matmul/weight_rows.h"

namespace tandem::kernels::cuda {

// Whether codes are signed bytes (CodeAt in device/blocks.h); the others are below 64.
template <tensor::Type kType>
inline constexpr bool kSignedCodes = Format<kType>::kOffset == 0 && !Format<kType>::kHasMin;

// Byte `i` of a word of codes, less the format's offset, as a float: a byte under the exponent of
// 2^23 counts from there, and a subtraction is exact. Conversions run at a fraction of its rate.
template <tensor::Type kType>
__device__ __forceinline__ float CodeToFloat(uint32_t word, uint32_t i) {
  constexpr float kBase = 0x1p23f;
  const uint32_t bits = __byte_perm(word, 0x4b000000u, 0x7440 | i);
  return __uint_as_float(bits) - (kBase + (kSignedCodes<kType> ? 128 : Format<kType>::kOffset));
}

// Of a block-quantised type; F16 and BF16 below.
template <tensor::Type kType>
class RowGroup {
  using F = Format<kType>;

 public:
  // From column `col` on, a multiple of 32.
  __device__ __forceinline__ void Load(const std::byte* row, uint32_t, uint32_t col) {
    weights_ = LoadGroup<kType>(row, col / 32, col / 32 % 8);
  }

  // Values [8 eight, 8 eight + 8) in pairs.
  __device__ __forceinline__ void ToBf16(uint32_t eight, uint32_t (&pairs)[4]) const {
    const uint32_t half = F::kHalves ? eight / 2 : 0;
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      // Signed codes count from -128: the top bit turned over.
      const uint32_t codes = weights_.codes[2 * eight + i / 2];
      const uint32_t word = kSignedCodes<kType> ? codes ^ 0x80808080u : codes;
      pairs[i] = FloatsToBf16(Value(word, i % 2 * 2, half), Value(word, i % 2 * 2 + 1, half));
    }
  }

 private:
  __device__ __forceinline__ float Value(uint32_t word, uint32_t i, uint32_t half) const {
    const float code = CodeToFloat<kType>(word, i);
    if constexpr (F::kHasMin) {
      return fmaf(code, weights_.scales.scale[half], -weights_.scales.min[half]);
    }
    return __fmul_rn(code, weights_.scales.scale[half]);
  }

  WeightGroup<kType> weights_;
};

// Of 16-bit floats: read when they are used, as there is nothing to share between them.
template <tensor::Type kType>
class PlainRowGroup {
 public:
  __device__ __forceinline__ void Load(const std::byte* row, uint32_t cols, uint32_t col) {
    row_ = row;
    cols_ = cols;
    col_ = col;
  }
  __device__ __forceinline__ void ToBf16(uint32_t eight, uint32_t (&pairs)[4]) const {
    float w[8];
    LoadWeights<kType>(row_, cols_, col_ + 8 * eight, w);
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) pairs[i] = FloatsToBf16(w[2 * i], w[2 * i + 1]);
  }

 private:
  const std::byte* row_;
  uint32_t cols_;
  uint32_t col_;
};
template <>
class RowGroup<tensor::Type::kF16> : public PlainRowGroup<tensor::Type::kF16> {};
template <>
class RowGroup<tensor::Type::kBF16> : public PlainRowGroup<tensor::Type::kBF16> {};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_ROW_GROUP_H_
