// Reading rows of a weight in matrix-vector kernels: 8 values at a time with their inputs, or 32 as
// bytes. kRowLanes lanes of a warp share a row, so a warp has kWarpRows rows at once.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_WEIGHT_ROWS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_WEIGHT_ROWS_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/blocks.h"
#include "kernels/cuda/device/floats.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/matmul/column_window.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kRowLanes = 8;
inline constexpr uint32_t kWarpRows = kWarp / kRowLanes;

// Weights [col, col + 8), col a multiple of 8; zeros beyond the last column.
template <tensor::Type kType>
__device__ __forceinline__ void LoadWeights(const std::byte* row, uint32_t cols, uint32_t col,
                                            float (&out)[8]) {
  if (IsPlain(kType) && col + 8 > cols) {
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) out[i] = col + i < cols ? ValueAt<kType>(row, col + i) : 0.0f;
  } else {
    Dequantize8<kType>(row, col, out);
  }
}

// The corresponding inputs; x begins at the window's first column. `fours`: it and all rows are
// 16-byte aligned there (InputsInFours).
__device__ __forceinline__ void LoadInputs(const float* x, const ColumnWindow& window, bool fours,
                                           uint32_t col, float (&out)[8]) {
  if (fours && col >= window.begin && col + 8 <= window.end) {
    const auto low = Load<4>(x + (col - window.begin));
    const auto high = Load<4>(x + (col - window.begin) + 4);
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      out[i] = low.at[i];
      out[i + 4] = high.at[i];
    }
  } else {
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) {
      const bool inside = col + i >= window.begin && col + i < window.end;
      out[i] = inside ? x[col + i - window.begin] : 0.0f;
    }
  }
}
inline bool InputsInFours(const ColumnWindow& window, const float* x,
                          std::initializer_list<uint32_t> strides) {
  return window.begin % 4 == 0 && InFours(strides, {x});
}

// This lane's part of the products of one row with kTokens inputs; `input(t)` is null if absent.
template <tensor::Type kType, uint32_t kTokens, typename Input>
__device__ __forceinline__ void MultiplyFloats(const std::byte* row, uint32_t cols,
                                               const ColumnWindow& window, bool fours, Input input,
                                               float (&sums)[kTokens]) {
  for (uint32_t i = threadIdx.x % kRowLanes * 8; i < window.padded; i += kRowLanes * 8) {
    float w[8], x[8];
    LoadWeights<kType>(row, cols, window.first + i, w);
#pragma unroll
    for (uint32_t t = 0; t < kTokens; ++t) {
      const float* const from = input(t);
      if (from == nullptr) continue;
      LoadInputs(from, window, fours, window.first + i, x);
#pragma unroll
      for (uint32_t c = 0; c < 8; ++c) sums[t] += w[c] * x[c];
    }
  }
}

// Reduced: the full sum in every lane of the row.
__device__ __forceinline__ float SumOfRow(float part) {
  return LanesReduce<kRowLanes>(part, AddOp());
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_WEIGHT_ROWS_H_
