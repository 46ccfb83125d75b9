// Tensor-core tiles whose weights are dequantised straight to registers: no shared memory, so warps
// never wait for each other.
//
// The order of columns within a sum is free, and so is the assignment of outputs to columns of B.
// So fragments (device/mma.h) are assigned such that a lane's values are runs of 8 in a row of the
// weight, as Dequantize8 gives them, each weight once per warp, and runs of 8 in a row of inputs,
// which is one load of 16 bytes.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_WEIGHT_TILES_H_
#define TANDEM_KERNELS_CUDA_MATMUL_WEIGHT_TILES_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/matmul/weight_rows.h"

namespace tandem::kernels::cuda {

// What a warp multiplies: rows of a weight, 16 kRowTiles of them, with up to 8 kInputTiles inputs.
template <uint32_t kRowTiles, uint32_t kInputTiles>
struct ProductTile {
  static constexpr uint32_t kRows = 16 * kRowTiles;
  static constexpr uint32_t kInputs = 8 * kInputTiles;

  // With group = lane / 4 and pair = lane % 4: sums[r][i][0], [1] are of row 16 r + group and
  // inputs 8 i + 2 pair, + 1; [2], [3] of row 16 r + group + 8 and the same inputs.
  float sums[kRowTiles][kInputTiles][4] = {};

  // Calls f(row, input, sum) for every sum that this lane holds.
  template <typename F>
  __device__ __forceinline__ void ForEach(F f) const {
    const uint32_t group = threadIdx.x % kWarp / 4, pair = threadIdx.x % 4;
#pragma unroll
    for (uint32_t r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (uint32_t i = 0; i < kInputTiles; ++i) {
#pragma unroll
        for (uint32_t c = 0; c < 4; ++c) {
          f(16 * r + group + c / 2 * 8, 8 * i + 2 * pair + c % 2, sums[r][i][c]);
        }
      }
    }
  }
};

// sums[row][input] += W[row] . x[input]. `row(i)` points to row i of the tile, or to any readable
// row if the tile has no row i; `input(i)` likewise to an input, as RoundRows wrote it for this
// window. Only the first `inputs` inputs are used. All lanes of the warp call it.
template <tensor::Type kType, uint32_t kRowTiles, uint32_t kInputTiles, typename Row,
          typename Input>
__device__ __forceinline__ void MultiplyTile(Row row, Input input, uint32_t cols,
                                             const ColumnWindow& window, uint32_t inputs,
                                             ProductTile<kRowTiles, kInputTiles>& tile) {
  const uint32_t group = threadIdx.x % kWarp / 4, pair = threadIdx.x % 4;
  const std::byte* rows[kRowTiles][2];
#pragma unroll
  for (uint32_t r = 0; r < kRowTiles; ++r) {
    rows[r][0] = row(16 * r + group);
    rows[r][1] = row(16 * r + group + 8);
  }
  const uint16_t* from[kInputTiles];
#pragma unroll
  for (uint32_t i = 0; i < kInputTiles; ++i) from[i] = input(8 * i + group);

  for (uint32_t k = 8 * pair; k < window.padded; k += 32) {
    uint32_t a[kRowTiles][2][4];  // of two steps of 16 columns
#pragma unroll
    for (uint32_t r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (uint32_t half = 0; half < 2; ++half) {
        float w[8];
        LoadWeights<kType>(rows[r][half], cols, window.first + k, w);
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) {
          a[r][i / 2][half + i % 2 * 2] = FloatsToBf16(w[2 * i], w[2 * i + 1]);
        }
      }
    }
#pragma unroll
    for (uint32_t i = 0; i < kInputTiles; ++i) {
      if (8 * i >= inputs) break;
      const uint4 x = *reinterpret_cast<const uint4*>(from[i] + k);
      const uint32_t b[2][2] = {{x.x, x.y}, {x.z, x.w}};
#pragma unroll
      for (uint32_t r = 0; r < kRowTiles; ++r) {
        MmaBf16(tile.sums[r][i], a[r][0], b[0]);
        MmaBf16(tile.sums[r][i], a[r][1], b[1]);
      }
    }
  }
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_WEIGHT_TILES_H_
