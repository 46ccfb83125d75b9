// Shared by the kernels of ExpertMatMul. A choice is (token, slot): its index is token * top_k +
// slot, as in ExpertMatMulParams::ids.
//
// Grouped GEMV, for few tokens and F32 weights: rows of experts are multiplied with the inputs of
// all tokens (of a run of kFewTokens) that chose the expert, in floats or, where weights are
// blocks, in bytes. Grouped GEMM, for many: choices are sorted by expert and multiplied in tiles on
// tensor cores, in BF16.
//
// "Down" always adds a token's contributions in ascending order of experts: a block has some rows
// of the output for all tokens of its run; its warps, each with its own experts, write products to
// shared memory, and after a barrier one thread sums each output. So contributions never go to
// device memory, nothing depends on the order in which warps run, and experts' rows are read once
// per run.
#ifndef TANDEM_KERNELS_CUDA_MOE_EXPERT_MATMUL_H_
#define TANDEM_KERNELS_CUDA_MOE_EXPERT_MATMUL_H_

#include <cstdint>

#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kFewTokens = 8;

// All projections of a call have the same type, shape and window.
void EncodeGroupedGemvUp(Stream& stream, const ExpertMatMulParams& params);
void EncodeGroupedGemvDown(Stream& stream, const ExpertMatMulParams& params);
void EncodeGroupedGemmUp(Stream& stream, const ExpertMatMulParams& params);
void EncodeGroupedGemmDown(Stream& stream, const ExpertMatMulParams& params);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_EXPERT_MATMUL_H_
