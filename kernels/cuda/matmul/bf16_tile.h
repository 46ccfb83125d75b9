// Products of rows of a block-quantised weight with BF16 rows of x on tensor cores, straight from
// memory: 16 kRowTiles rows with 8 kTokenTiles tokens by a block of eight warps, each with one
// range of columns (column_ranges.h). Every weight is read, and converted, by one warp.
//
// Kernels of these do not begin early (device/launch_order.h): where blocks are about as many as
// multiprocessors, those that find places beside another kernel's leave other multiprocessors idle.
//
// Lanes read 16 bytes at a time: a quad has eight columns of each of four groups in a step of the
// tensor cores, in an order of columns that weights and x share.
//
// Floor: the bytes of the rows are read once; 2 operations per weight and token on tensor cores.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_BF16_TILE_H_
#define TANDEM_KERNELS_CUDA_MATMUL_BF16_TILE_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/bf16_weights.h"
#include "kernels/cuda/device/blocks.h"
#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/device/shared_array.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/matmul/bf16_inputs.h"
#include "kernels/cuda/matmul/column_ranges.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kTileThreads = kColumnRanges * kWarp;

// Where a tile's sums are: in shared memory, per range, token and row. Shape: tile_shapes.h.
template <typename Shape>
class TileSums {
  // The padding keeps a fragment's values in different banks.
  static constexpr uint32_t kPitch = Shape::kRows + 4;

 public:
  static constexpr uint32_t kRoom = kColumnRanges * Shape::kTokens * kPitch;  // floats

  __device__ __forceinline__ explicit TileSums(SharedArena& arena)
      : room_(arena.Take<float>(kRoom)) {}

  // `line` is a range's number times kTokens, plus a token.
  __device__ __forceinline__ void Set(uint32_t line, uint32_t row, float sum) const {
    room_[line * kPitch + row] = sum;
  }
  // Of all ranges.
  __device__ __forceinline__ float Sum(uint32_t row, uint32_t token) const {
    float sum = room_[token * kPitch + row];
#pragma unroll
    for (uint32_t range = 1; range < kColumnRanges; ++range)
      sum += room_[(range * Shape::kTokens + token) * kPitch + row];
    return sum;
  }

 private:
  const SharedArray<float> room_;
};

template <tensor::Type kType, typename Shape>
class Bf16Tile {
  static constexpr uint32_t kRowTiles = Shape::kRowTiles, kTokenTiles = Shape::kTokenTiles;
  static constexpr uint32_t kRows = Shape::kRows, kTokens = Shape::kTokens;

 public:
  // Of the tokens from `first_token` on.
  __device__ __forceinline__ Bf16Tile(const Bf16Inputs& in, uint32_t first_token)
      : in_(in), first_token_(first_token) {}

  // row(i) points to row i of the tile, or to any row if the tile has none. All threads call it;
  // then `to` has the sums.
  template <typename Row>
  __device__ __forceinline__ void Multiply(Row row, const TileSums<Shape>& to) {
#pragma unroll
    for (uint32_t r = 0; r < kLaneRows; ++r) rows_[r] = row(8 * r + Quad());
#pragma unroll
    for (uint32_t n = 0; n < kTokenTiles; ++n)
      x_[n] =
          min(first_token_ + 8 * n + Quad(), in_.tokens - 1) * in_.stride - 32 * in_.groups.begin;
    const uint32_t range = threadIdx.x / kWarp;
    const uint32_t first = FirstOctet(in_.groups, range), end = FirstOctet(in_.groups, range + 1);
    if (HasOctets(in_.groups, first, end)) {
      MultiplyRange<true>(first, end);
    } else {
      MultiplyRange<false>(first, end);
    }
    ShareSums(to);
  }

 private:
  // Rows that a lane reads: of every tile one in the upper and one in the lower half.
  static constexpr uint32_t kLaneRows = 2 * kRowTiles;

  static __device__ __forceinline__ uint32_t Quad() { return threadIdx.x % kWarp / 4; }

  // Octets [first, end). kWhole: they lack no group.
  template <bool kWhole>
  __device__ __forceinline__ void MultiplyRange(uint32_t first, uint32_t end) {
    // Halves of an octet that are read at once: as many as registers hold.
    constexpr uint32_t kAtOnce = kTokenTiles == 1 && kWhole ? 2 : 1;
#pragma unroll 1
    for (uint32_t half = 2 * first; half < 2 * end; half += kAtOnce) {
      WeightGroup<kType> weights[kAtOnce][kLaneRows];
#pragma unroll
      for (uint32_t h = 0; h < kAtOnce; ++h) LoadHalf<kWhole>(half + h, weights[h]);
#pragma unroll
      for (uint32_t h = 0; h < kAtOnce; ++h) MultiplyHalf<kWhole>(half + h, weights[h]);
    }
  }

  // The lane's group of a half, of its octet and of all.
  static __device__ __forceinline__ uint32_t InOctet(uint32_t half) {
    return half % 2 * kHalfGroups + threadIdx.x % kHalfGroups;
  }
  static __device__ __forceinline__ uint32_t GroupOf(uint32_t half) {
    return half / 2 * kOctetGroups + InOctet(half);
  }

  template <bool kWhole>
  __device__ __forceinline__ void LoadHalf(uint32_t half,
                                           WeightGroup<kType> (&weights)[kLaneRows]) const {
    const uint32_t group = GroupOf(half);
#pragma unroll
    for (uint32_t r = 0; r < kLaneRows; ++r) {
      if constexpr (!kWhole) weights[r] = {};
      if (kWhole || in_.groups.Has(group))
        weights[r] = LoadGroup<kType>(rows_[r], group, InOctet(half));
    }
  }

  template <bool kWhole>
  __device__ __forceinline__ void MultiplyHalf(uint32_t half,
                                               const WeightGroup<kType> (&weights)[kLaneRows]) {
    const uint32_t group = GroupOf(half);
    // A missing group's weights are zeros, times any group of the rows of x.
    const bool has = kWhole || in_.groups.Has(group);
    const uint32_t column = 32 * (has ? group : in_.groups.begin);
    Bf16Scales<kType> scales[kLaneRows];
#pragma unroll
    for (uint32_t r = 0; r < kLaneRows; ++r) scales[r] = Bf16Scales<kType>(weights[r].scales);
#pragma unroll
    for (uint32_t part = 0; part < 4; ++part) {
      uint32_t a[2][kRowTiles][4];  // of the first and the last four of eight columns
#pragma unroll
      for (uint32_t r = 0; r < kLaneRows; ++r) {
        uint32_t pairs[4];
        ToBf16<kType>(weights[r].codes, scales[r], part, pairs);
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) a[i / 2][r / 2][i % 2 * 2 + r % 2] = pairs[i];
      }
#pragma unroll
      for (uint32_t n = 0; n < kTokenTiles; ++n) {
        const uint4 x = *reinterpret_cast<const uint4*>(in_.x + (x_[n] + column + 8 * part));
        const uint32_t b[2][2] = {{x.x, x.y}, {x.z, x.w}};
#pragma unroll
        for (uint32_t i = 0; i < 2; ++i) {
#pragma unroll
          for (uint32_t r = 0; r < kRowTiles; ++r) MmaBf16(sums_[r][n], a[i][r], b[i]);
        }
      }
    }
  }

  // Puts the sums of the warps' ranges where all threads find them.
  __device__ __forceinline__ void ShareSums(const TileSums<Shape>& to) const {
    // range * kTokens, written so that it is computed here and `range` is not kept in a register.
    const uint32_t first = threadIdx.x / kWarp * kWarp * kTokens / kWarp;
#pragma unroll
    for (uint32_t r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (uint32_t n = 0; n < kTokenTiles; ++n) {
#pragma unroll
        for (uint32_t c = 0; c < 4; ++c) {
          const uint32_t row = 16 * r + c / 2 * 8 + Quad();
          const uint32_t token = 8 * n + threadIdx.x % 4 * 2 + c % 2;
          to.Set(first + token, row, sums_[r][n][c]);
        }
      }
    }
    __syncthreads();
  }

  const Bf16Inputs in_;
  const uint32_t first_token_;
  const std::byte* rows_[kLaneRows];
  // Offsets in in_.x, modulo 2^32, of column 0 of the lane's rows: pointers take twice the
  // registers.
  uint32_t x_[kTokenTiles];
  float sums_[kRowTiles][kTokenTiles][4] = {};
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_BF16_TILE_H_
