// Of the matrix-vector kernels for plain weights: a block has kRows rows of one weight, its threads
// divide the columns among them, and their sums are added up over warps, then over the block.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_GEMV_ROWS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_GEMV_ROWS_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/warp_sums.h"
#include "kernels/cuda/matmul/gemv.h"
#include "kernels/cuda/matmul/store_sum.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kMaxMatVecThreads = 128;
// Leaves 128 registers per thread, so that the loads of all its rows are in flight together.
inline constexpr uint32_t kMatVecBlocksPerSm = 4;

// The rows of a block; block (x, y) computes part y.
template <int kRows>
class BlockOfRows {
 public:
  __device__ __forceinline__ explicit BlockOfRows(const MatVecPart& part)
      : part_(part), first_(blockIdx.x * kRows) {}

  // Parts may have different heights.
  __device__ __forceinline__ bool empty() const { return first_ >= part_.rows; }
  __device__ __forceinline__ const std::byte* Row(int r) const {
    return RowOrLast(part_, first_ + static_cast<uint32_t>(r));
  }

  // Adds up the threads' sums and writes y. All threads call it; `room` has SharedFloats floats.
  template <int kTokens>
  __device__ __forceinline__ void Finish(float (&sums)[kRows * kTokens], uint32_t tokens,
                                         SharedArray<float> room) const {
    constexpr int kCount = kRows * kTokens;
    const float mine = WarpSums(sums);
    const uint32_t lane = threadIdx.x % kWarp;
    if (lane % (kWarp / kCount) == 0) {
      room[threadIdx.x / kWarp * kCount + SumOfLane<kCount>(lane)] = mine;
    }
    __syncthreads();
    if (threadIdx.x >= kCount) return;
    float sum = room[threadIdx.x];
    for (uint32_t warp = 1; warp < blockDim.x / kWarp; ++warp) {
      sum += room[warp * kCount + threadIdx.x];
    }
    const uint32_t row = first_ + threadIdx.x / kTokens, token = threadIdx.x % kTokens;
    if (row < part_.rows && token < tokens) StoreSum(part_, row, token, sum);
  }

 private:
  const MatVecPart& part_;
  const uint32_t first_;
};

// Threads for rows that are `units` long, a thread taking one at a time: whole warps. It depends
// only on the columns, and so does the order of the sums.
inline uint32_t MatVecThreads(uint32_t units) {
  return std::clamp(Blocks(units, kWarp) * kWarp, kWarp, kMaxMatVecThreads);
}

template <int kRows>
dim3 MatVecGrid(const MatVecParts& parts) {
  uint32_t rows = 0;
  for (uint32_t i = 0; i < parts.count; ++i) rows = std::max(rows, parts.part[i].rows);
  return dim3(Blocks(rows, kRows), parts.count);
}

// Calls launch with the number of tokens of the kernel instance, at most kMost, as an
// integral_constant.
template <uint32_t kMost, typename F>
void DispatchTokens(uint32_t tokens, F&& launch) {
  if (tokens == 1) return launch(std::integral_constant<int, 1>());
  if (tokens == 2) return launch(std::integral_constant<int, 2>());
  if constexpr (kMost > 2) {
    if (tokens <= 4) return launch(std::integral_constant<int, 4>());
    launch(std::integral_constant<int, 8>());
  }
}

// Rows per block: many share the activations that they read, up to what registers hold.
constexpr int MatVecRows(int tokens) { return tokens <= 4 ? 4 : 2; }

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_GEMV_ROWS_H_
