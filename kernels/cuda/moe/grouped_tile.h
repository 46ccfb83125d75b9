// Tiles of grouped products on BF16 tensor cores: a block has kTileRows rows of an expert and up to
// 8 kInputTiles of its choices, a warp 32 of the rows and all the choices.
//
// Inputs, rounded to BF16, come to shared memory by asynchronous copies, 128 columns at a time.
// Weights go from memory to fragments in registers: every weight is dequantised once per block, and
// while a warp waits for its weights others of the multiprocessor multiply.
//
// The order of columns within a sum is free, if it is the same for both factors. So in each 128
// columns the lanes of a row (device/mma.h: "pair") have a group of 32 each, with its scales read
// once, and go through it four columns at a time. The order does not depend on kInputTiles.
#ifndef TANDEM_KERNELS_CUDA_MOE_GROUPED_TILE_H_
#define TANDEM_KERNELS_CUDA_MOE_GROUPED_TILE_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/async_copy.h"
#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/device/shared_array.h"
#include "kernels/cuda/moe/row_group.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kGroupedTileWarps = 4;
inline constexpr uint32_t kGroupedTileThreads = kGroupedTileWarps * kWarp;
inline constexpr uint32_t kGroupedTileRows = kGroupedTileWarps * 32;

template <tensor::Type kType, uint32_t kInputTiles>
class GroupedTile {
  static constexpr uint32_t kInputs = 8 * kInputTiles;
  static constexpr uint32_t kStages = 3;
  static constexpr uint32_t kStepColumns = 128;
  static constexpr uint32_t kRowUnits = kStepColumns / 8;  // of an input in a stage, 16 bytes each
  static constexpr uint32_t kStageUnits = kInputs * kRowUnits;

 public:
  // uint4s of shared memory that a block needs.
  static constexpr uint32_t kRoom = kStages * kStageUnits;

  // `inputs` inputs are used.
  __device__ __forceinline__ GroupedTile(SharedArray<uint4> room, uint32_t inputs)
      : room_(room), inputs_(inputs) {}

  // row(i) points to row i of the warp's 32, or to any row if the weight has none; input(i) to
  // input i, `columns` values, a multiple of 32, of which the first is column `first` of the
  // weight. All threads call it.
  template <typename Row, typename Input>
  __device__ __forceinline__ void Multiply(uint32_t cols, uint32_t first, uint32_t columns, Row row,
                                           Input input) {
    const uint32_t group = threadIdx.x % kWarp / 4, pair = threadIdx.x % 4;
    const std::byte* rows[2][2];
#pragma unroll
    for (uint32_t r = 0; r < 2; ++r) {
      rows[r][0] = row(16 * r + group);
      rows[r][1] = row(16 * r + group + 8);
    }
    const uint32_t steps = (columns + kStepColumns - 1) / kStepColumns;
#pragma unroll
    for (uint32_t i = 0; i + 1 < kStages; ++i) {
      if (i < steps) BeginCopies(i, i, columns, input);
      EndCopyGroup();
    }
    uint32_t stage = 0, free = kStages - 1;
    for (uint32_t step = 0; step < steps; ++step) {
      // Beyond the last group inputs are zeros, and weights whatever there is.
      const uint32_t column = min(kStepColumns * step + 32 * pair, columns - 32);
      RowGroup<kType> weights[2][2];
#pragma unroll
      for (uint32_t r = 0; r < 2; ++r) {
        weights[r][0].Load(rows[r][0], cols, first + column);
        weights[r][1].Load(rows[r][1], cols, first + column);
      }
      WaitForCopies<kStages - 2>();
      __syncthreads();  // also: the stage before this one has been read
      if (step + kStages - 1 < steps) BeginCopies(free, step + kStages - 1, columns, input);
      EndCopyGroup();
      MultiplyStep(weights, room_ + stage * kStageUnits);
      free = stage;
      stage = stage + 1 == kStages ? 0 : stage + 1;
    }
  }

  // Calls use(row, input, sum) for every sum that this lane holds of the inputs that are used.
  template <typename Use>
  __device__ __forceinline__ void ForEachSum(Use use) const {
    const uint32_t group = threadIdx.x % kWarp / 4, pair = threadIdx.x % 4;
#pragma unroll
    for (uint32_t i = 0; i < kInputTiles; ++i) {
#pragma unroll
      for (uint32_t n = 0; n < 2; ++n) {
        const uint32_t input = 8 * i + 2 * pair + n;
        if (input >= inputs_) continue;
#pragma unroll
        for (uint32_t r = 0; r < 2; ++r) {
          use(16 * r + group, input, sums_[r][i][n]);
          use(16 * r + group + 8, input, sums_[r][i][n + 2]);
        }
      }
    }
  }

 private:
  // Where the eight columns `eight` (of four) of group `group` (of four) of an input lie: neither
  // the copies of an input's units nor the loads of two inputs' groups meet in a bank.
  static __device__ __forceinline__ uint32_t UnitAt(uint32_t input, uint32_t group,
                                                    uint32_t eight) {
    return input * kRowUnits + ((group & 1) | ((eight ^ group >> 1) & 1) << 1 |
                                ((eight >> 1 ^ input) & 1) << 2 | (group >> 1) << 3);
  }

  // A thread copies the same unit of every eighth input.
  template <typename Input>
  __device__ __forceinline__ void BeginCopies(uint32_t stage, uint32_t step, uint32_t columns,
                                              Input input) const {
    static_assert(kGroupedTileThreads / kRowUnits == 8);
    const SharedArray<uint4> to = room_ + stage * kStageUnits;
    const uint32_t unit = threadIdx.x % kRowUnits, column = kStepColumns * step + 8 * unit;
#pragma unroll
    for (uint32_t i = 0; i < kInputTiles; ++i) {
      if (i % 2 == 0 && 8 * i >= inputs_) break;  // tiles are multiplied two at a time
      const uint32_t mine = 8 * i + threadIdx.x / kRowUnits;
      const uint32_t at = UnitAt(mine, unit / 4, unit % 4);
      if (column < columns) {
        BeginCopy16(to, at, input(mine) + column);
      } else {
        to[at] = uint4{0, 0, 0, 0};
      }
    }
  }

  __device__ __forceinline__ void MultiplyStep(const RowGroup<kType> (&weights)[2][2],
                                               SharedArray<uint4> stage) {
    const uint32_t group = threadIdx.x % kWarp / 4, pair = threadIdx.x % 4;
#pragma unroll
    for (uint32_t eight = 0; eight < 4; ++eight) {
      uint32_t a[2][2][4];  // of two steps of 16 columns, four of each lane of a row
#pragma unroll
      for (uint32_t r = 0; r < 2; ++r) {
#pragma unroll
        for (uint32_t half = 0; half < 2; ++half) {
          uint32_t pairs[4];
          weights[r][half].ToBf16(eight, pairs);
#pragma unroll
          for (uint32_t i = 0; i < 4; ++i) a[r][i / 2][half + i % 2 * 2] = pairs[i];
        }
      }
#pragma unroll
      for (uint32_t i = 0; i < kInputTiles; i += 2) {
        if (8 * i >= inputs_) break;
        // Four sums at a time: a multiplication does not wait for the one before it.
        const uint4 x = stage[UnitAt(8 * i + group, pair, eight)];
        const uint4 y = stage[UnitAt(8 * i + 8 + group, pair, eight)];
        const uint32_t b[2][2][2] = {{{x.x, x.y}, {y.x, y.y}}, {{x.z, x.w}, {y.z, y.w}}};
#pragma unroll
        for (uint32_t k = 0; k < 2; ++k) {
#pragma unroll
          for (uint32_t j = 0; j < 2; ++j) {
            MmaBf16(sums_[0][i + j], a[0][k], b[k][j]);
            MmaBf16(sums_[1][i + j], a[1][k], b[k][j]);
          }
        }
      }
    }
  }

  const SharedArray<uint4> room_;
  const uint32_t inputs_;
  // With group = lane / 4 and pair = lane % 4: sums_[r][i][0], [1] are of row 16 r + group and
  // inputs 8 i + 2 pair, + 1; [2], [3] of row 16 r + group + 8 and the same inputs.
  float sums_[2][kInputTiles][4] = {};
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_GROUPED_TILE_H_
