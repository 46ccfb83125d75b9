// On the device: which choices of an expert a block or warp of the grouped GEMV multiplies.
#ifndef TANDEM_KERNELS_CUDA_MOE_GEMV_CHOICES_H_
#define TANDEM_KERNELS_CUDA_MOE_GEMV_CHOICES_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/partial_sums.h"
#include "kernels/cuda/matmul/row_pieces.h"
#include "kernels/cuda/matmul/weight_rows.h"
#include "kernels/cuda/moe/expert_choices.h"
#include "kernels/cuda/moe/grouped_gemv.h"

namespace tandem::kernels::cuda {

// Up to kTokens choices of one expert; -1 where there is none.
template <uint32_t kTokens>
struct ChoicesOfExpert {
  int32_t at[kTokens];

  // Whether `choice` is the first of them: if an expert was chosen several times, only the block or
  // warp of its first choice does the work.
  __device__ __forceinline__ bool FirstIs(uint32_t choice) const {
    int32_t first = -1;
#pragma unroll
    for (uint32_t t = 0; t < kTokens; ++t) {
      if (first < 0) first = at[t];
    }
    return first == static_cast<int32_t>(choice);
  }
};

// All tokens' choices of the expert that `choice` is of; at most kTokens tokens. All lanes of the
// warp.
template <uint32_t kTokens>
__device__ __forceinline__ ChoicesOfExpert<kTokens> FindChoices(const ExpertMatMulParams& p,
                                                                uint32_t choice) {
  ChoicesOfExpert<kTokens> found;
  if constexpr (kTokens == 1) {
    found.at[0] = static_cast<int32_t>(choice);
    return found;
  }
  const int32_t id = p.ids[choice];
  const uint32_t lane = threadIdx.x % kWarp;
#pragma unroll
  for (uint32_t t = 0; t < kTokens; ++t) {
    found.at[t] = -1;
    if (t >= p.tokens) continue;
    const uint32_t first = t * p.top_k;
    for (uint32_t j = 0; j < p.top_k && found.at[t] < 0; j += kWarp) {
      const bool mine = j + lane < p.top_k && p.ids[first + j + lane] == id;
      const uint32_t lanes = __ballot_sync(kAllLanes, mine);
      if (lanes != 0)
        found.at[t] = static_cast<int32_t>(first + j) + __ffs(static_cast<int>(lanes)) - 1;
    }
  }
  return found;
}

template <uint32_t kTokens>
__device__ __forceinline__ ChoicesOfExpert<kTokens> ChoicesOfPiece(const RowPieces& pieces,
                                                                   const RowPiece& piece) {
  ChoicesOfExpert<kTokens> found;
#pragma unroll
  for (uint32_t t = 0; t < kTokens; ++t) {
    found.at[t] = t < piece.count ? static_cast<int32_t>(pieces.RowOfY(piece, t)) : -1;
  }
  return found;
}

// sums[t]: this lane's part of row . input of choice t.
template <tensor::Type kType, uint32_t kTokens>
__device__ __forceinline__ void MultiplyChoices(const GroupedGemvArgs& a, const std::byte* row,
                                                uint32_t cols,
                                                const ChoicesOfExpert<kTokens>& choices,
                                                float (&sums)[kTokens]) {
  if constexpr (IsPlain(kType)) {
    MultiplyFloats<kType>(
        row, cols, a.window, a.fours,
        [&](uint32_t t) -> const float* {
          if (choices.at[t] < 0) return nullptr;
          return a.p.x + static_cast<size_t>(InputOfChoice(a.p, choices.at[t])) * a.p.x_stride;
        },
        sums);
  } else {
    static_assert(kRowLanes == kPartialSums);
    const uint32_t lane = threadIdx.x % kRowLanes;
    const uint32_t first = a.window.first / 32, groups = a.window.padded / 32;
#pragma unroll 2
    for (uint32_t g = FirstGroupOf(lane, first); g < first + groups; g += kRowLanes) {
      const WeightGroup<kType> weights = LoadGroup<kType>(row, g, lane);
#pragma unroll
      for (uint32_t t = 0; t < kTokens; ++t) {
        if (choices.at[t] < 0) continue;
        const size_t input = InputOfChoice(a.p, choices.at[t]);
        sums[t] =
            MultiplyAdd(weights, LoadInt8Group(a.groups + input * groups + (g - first)), sums[t]);
      }
    }
  }
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_GEMV_CHOICES_H_
