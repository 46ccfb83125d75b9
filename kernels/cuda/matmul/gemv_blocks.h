// The matrix-vector kernel for block-quantised weights; its .cu files instantiate it for some types
// each, so that they compile in parallel.
//
// A thread unpacks one group of 32 of every row of its block at a time, scales in registers, and
// multiplies it with the group of every token.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_GEMV_BLOCKS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_GEMV_BLOCKS_H_

#include "kernels/cuda/device/blocks.h"
#include "kernels/cuda/matmul/gemv_rows.h"

namespace tandem::kernels::cuda {

struct BlockMatVecTask {
  MatVecParts parts;
  const Int8Group* x;
  uint32_t tokens;
  uint32_t first_group;
  uint32_t groups;
};

template <tensor::Type kType, int kTokens, int kRows>
__global__ void __launch_bounds__(kMaxMatVecThreads, kMatVecBlocksPerSm)
    BlockMatVecKernel(const __grid_constant__ BlockMatVecTask task) {
  SharedArena arena;
  const SharedArray<float> room = arena.Take<float>(kRows * kTokens * kMaxMatVecThreads / kWarp);
  const BlockOfRows<kRows> block(task.parts.part[blockIdx.y]);
  if (block.empty()) return;  // the whole block
  float sums[kRows * kTokens] = {};
  for (uint32_t g = threadIdx.x; g < task.groups; g += blockDim.x) {
    WeightGroup<kType> weights[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      weights[r] = LoadGroup<kType>(block.Row(r), 32 * (task.first_group + g));
    }
#pragma unroll
    for (int t = 0; t < kTokens; ++t) {
      const uint32_t token = min(static_cast<uint32_t>(t), task.tokens - 1);
      const Int8Group x = LoadInt8Group(task.x + static_cast<size_t>(token) * task.groups + g);
#pragma unroll
      for (int r = 0; r < kRows; ++r) sums[r * kTokens + t] += Dot(weights[r], x);
    }
  }
  block.template Finish<kTokens>(sums, task.tokens, room);
}

template <tensor::Type kType>
void LaunchBlockMatVec(Stream& stream, const BlockMatVecTask& task) {
  DispatchTokens(task.tokens, [&](auto tokens) {
    constexpr int kTokens = decltype(tokens)::value;
    constexpr int kRows = MatVecRows(kTokens);
    stream.Launch("matvec_blocks", &BlockMatVecKernel<kType, kTokens, kRows>,
                  MatVecGrid<kRows>(task.parts), MatVecThreads(task.groups),
                  SharedBytes<float>(kRows * kTokens * kMaxMatVecThreads / kWarp), task);
  });
}

// Each handles its own types; returns whether `type` is one of them.
bool LaunchBlockMatVecOf32(Stream& stream, tensor::Type type, const BlockMatVecTask& task);
bool LaunchBlockMatVecOf256(Stream& stream, tensor::Type type, const BlockMatVecTask& task);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_GEMV_BLOCKS_H_
