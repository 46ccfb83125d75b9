// On the device: which choices of an expert a block or warp of the grouped GEMV multiplies.
#ifndef TANDEM_KERNELS_CUDA_MOE_GEMV_CHOICES_H_
#define TANDEM_KERNELS_CUDA_MOE_GEMV_CHOICES_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/device/partial_sums.h"
#include "kernels/cuda/matmul/weight_rows.h"
#include "kernels/cuda/moe/expert_choices.h"
#include "kernels/cuda/moe/grouped_gemv.h"
#include "kernels/cuda/moe/row_pieces.h"

namespace tandem::kernels::cuda {

// Up to kMost choices of one expert.
template <uint32_t kMost>
struct ChoicesOfExpert {
  uint32_t count = 0;
  uint32_t at[kMost];

  // Without an index that registers would not allow.
  __device__ __forceinline__ void Add(uint32_t choice) {
#pragma unroll
    for (uint32_t i = 0; i < kMost; ++i) {
      if (i == count) at[i] = choice;
    }
    ++count;
  }
  // Without the first four.
  __device__ __forceinline__ void DropFour() {
#pragma unroll
    for (uint32_t i = 0; i + 4 < kMost; ++i) at[i] = at[i + 4];
    count -= 4;
  }
  // The last one in place of those that are missing. There is at least one.
  __device__ __forceinline__ void Fill() {
#pragma unroll
    for (uint32_t i = 1; i < kMost; ++i) {
      if (i >= count) at[i] = at[i - 1];
    }
  }
};

// All tokens' choices of the expert that `choice` is of; at most kMost tokens. If an expert was
// chosen several times, only the block or warp of its first choice does the work. All lanes of the
// warp.
template <uint32_t kMost>
__device__ __forceinline__ ChoicesOfExpert<kMost> FindChoices(const ExpertMatMulParams& p,
                                                              uint32_t choice) {
  ChoicesOfExpert<kMost> found;
  if constexpr (kMost == 1) {
    found.Add(choice);
    return found;
  }
  const int32_t id = p.ids[choice];
  const uint32_t lane = threadIdx.x % kWarp;
#pragma unroll
  for (uint32_t t = 0; t < kMost; ++t) {
    if (t >= p.tokens) continue;
    const uint32_t first = t * p.top_k;
    for (uint32_t j = 0; j < p.top_k; j += kWarp) {
      const bool mine = j + lane < p.top_k && p.ids[first + j + lane] == id;
      const uint32_t lanes = __ballot_sync(kAllLanes, mine);
      if (lanes == 0) continue;
      found.Add(first + j + static_cast<uint32_t>(__ffs(static_cast<int>(lanes))) - 1);
      break;
    }
  }
  found.Fill();
  return found;
}

template <uint32_t kMost>
__device__ __forceinline__ ChoicesOfExpert<kMost> ChoicesOfPiece(const RowPieces& pieces,
                                                                 const RowPiece& piece) {
  ChoicesOfExpert<kMost> found;
  found.count = piece.count;
#pragma unroll
  for (uint32_t t = 0; t < kMost; ++t) {
    found.at[t] = pieces.RowOfY(piece, min(t, piece.count - 1));
  }
  return found;
}

// sums[r][t]: this lane's part of rows[r] . input of choice t. Choices beyond the last are repeated
// rather than left out, so that nothing in the loop depends on how many there are.
template <tensor::Type kType, uint32_t kTokens, uint32_t kRows, uint32_t kMost>
__device__ __forceinline__ void MultiplyChoices(const GroupedGemvArgs& a,
                                                const std::byte* const (&rows)[kRows],
                                                uint32_t cols,
                                                const ChoicesOfExpert<kMost>& choices,
                                                float (&sums)[kRows][kTokens]) {
  if constexpr (IsPlain(kType)) {
    static_assert(kRows == 1);
    MultiplyFloats<kType>(
        rows[0], cols, a.window, a.fours,
        [&](uint32_t t) {
          return a.p.x + static_cast<size_t>(InputOfChoice(a.p, choices.at[t])) * a.p.x_stride;
        },
        sums[0]);
  } else {
    static_assert(kRowLanes == kPartialSums);
    const uint32_t lane = threadIdx.x % kRowLanes;
    const uint32_t first = a.window.first / 32, groups = a.window.padded / 32;
    uint32_t
        inputs[kTokens];  // offsets in a.groups, less `first`: pointers take twice the registers
#pragma unroll
    for (uint32_t t = 0; t < kTokens; ++t)
      inputs[t] = InputOfChoice(a.p, choices.at[t]) * groups - first;
#pragma unroll kTokens> 1 ? 1 : kRows == 1 ? 3 : 2
    for (uint32_t g = FirstGroupOf(lane, first); g < first + groups; g += kRowLanes) {
      WeightGroup<kType> weights[kRows];
#pragma unroll
      for (uint32_t r = 0; r < kRows; ++r) weights[r] = LoadGroup<kType>(rows[r], g, lane);
#pragma unroll
      for (uint32_t t = 0; t < kTokens; ++t) {
        const Int8Group x = LoadInt8Group(a.groups + (inputs[t] + g));
#pragma unroll
        for (uint32_t r = 0; r < kRows; ++r) sums[r][t] = MultiplyAdd(weights[r], x, sums[r][t]);
      }
    }
  }
}

// Multiplies kRows rows with as many choices as there are, and calls use(r, choice, sum) with each
// row's full sums, in every lane of the row. The code for one choice, for two or for four runs; for
// more than four, which registers would not hold, rows are read again, from a cache.
template <tensor::Type kType, uint32_t kRows, uint32_t kMost, typename Use>
__device__ __forceinline__ void ForEachProduct(const GroupedGemvArgs& a,
                                               const std::byte* const (&rows)[kRows], uint32_t cols,
                                               ChoicesOfExpert<kMost> choices, Use use) {
  const auto multiply = [&](auto tokens) {
    constexpr uint32_t kTokens = decltype(tokens)::value;
    float sums[kRows][kTokens] = {};
    MultiplyChoices<kType>(a, rows, cols, choices, sums);
#pragma unroll
    for (uint32_t t = 0; t < kTokens; ++t) {
      if (t >= choices.count) break;
#pragma unroll
      for (uint32_t r = 0; r < kRows; ++r) use(r, choices.at[t], SumOfRow(sums[r][t]));
    }
  };
  if constexpr (kMost > 1) {
    // The same for all lanes of a warp.
    for (; choices.count > 2; choices.DropFour()) {
      multiply(std::integral_constant<uint32_t, 4>());
      if (choices.count <= 4) return;
    }
    if (choices.count == 2) return multiply(std::integral_constant<uint32_t, 2>());
  }
  multiply(std::integral_constant<uint32_t, 1>());
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_GEMV_CHOICES_H_
