// Tiles of products with block-quantised weights on tensor cores: kRows rows of a weight times
// kInputs inputs as bytes (quantize_rows.h, by groups), by eight warps for each 32 rows.
//
// Packs and inputs come to shared memory as they are, 256 columns at a time, by asynchronous copies
// kStages deep. Of each 256 columns a warp multiplies its group of 32, which it unpacks straight to
// fragments: every weight is unpacked once per block. So a warp has one of the partial sums
// (partial_sums.h) of its 32 rows, and all are added at the end.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_INT8_TILE_H_
#define TANDEM_KERNELS_CUDA_DEVICE_INT8_TILE_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/async_copy.h"
#include "kernels/cuda/device/blocks.h"
#include "kernels/cuda/device/int8_stage.h"
#include "kernels/cuda/device/load_matrix.h"
#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/device/partial_sums.h"
#include "kernels/cuda/device/staged_bytes.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kRowsOfTileWarp = 32;
constexpr uint32_t Int8TileThreads(uint32_t rows) {
  return rows / kRowsOfTileWarp * kPartialSums * kWarp;
}
// Blocks per multiprocessor that registers allow.
constexpr uint32_t Int8TileBlocks(uint32_t rows) { return 512 / Int8TileThreads(rows); }

template <tensor::Type kType, uint32_t kRows, uint32_t kInputs>
class Int8Tile {
  using Stage = Int8Stage<kType, kRows, kInputs>;
  using F = Format<kType>;
  static constexpr uint32_t kThreads = Int8TileThreads(kRows);
  static constexpr uint32_t kRowTiles = kRowsOfTileWarp / 16,
                            kInputTiles = kInputs / 8;  // of a warp
  static constexpr uint32_t kStages = 3;
  // Tiles of 16 rows that are unpacked at a time: as many as registers hold beside the sums.
  static constexpr uint32_t kTilesAtOnce = F::kHalves ? 1 : kRowTiles;
  static constexpr uint32_t kRowsAtOnce = 16 * kTilesAtOnce;
  static constexpr uint32_t kCopyLanes = kThreads / kRows;
  static constexpr uint32_t kInputUnits = kInputs * Stage::kGroupUnits;  // of a group
  // Threads that copy a group's inputs: its warps'.
  static constexpr uint32_t kInputLanes = kThreads / kPartialSums;
  static constexpr uint32_t kInputCopies = (kInputUnits + kInputLanes - 1) / kInputLanes;
  // Sums of a warp in shared memory, [input][row]; the padding keeps a fragment's in different
  // banks.
  static constexpr uint32_t kSumPitch = kRows + 4;
  static constexpr uint32_t kSums = kInputs * kSumPitch;

 public:
  // uint4s of shared memory that a block needs.
  static constexpr uint32_t kRoom = std::max<uint32_t>(
      kStages * Stage::kUnits, kPartialSums* kSums * sizeof(float) / sizeof(uint4));

  __device__ __forceinline__ explicit Int8Tile(SharedArray<uint4> room) : room_(room) {}

  // row(i) points to row i of the tile, or to any row if the tile has none; input i, below
  // `inputs`, has its groups from x[input(i)] on. All threads call it.
  template <typename Row, typename Input>
  __device__ __forceinline__ void Multiply(GroupRange groups, Row row, uint32_t inputs,
                                           const Int8Group* x, Input input) {
    const uint32_t first = groups.begin / kPartialSums;
    const uint32_t end = (groups.begin + groups.count + kPartialSums - 1) / kPartialSums;
    const std::byte* const my_row = row(threadIdx.x / kCopyLanes);
    inputs_ = inputs;
    x_ = reinterpret_cast<const std::byte*>(x);
    PointTo(input);
#pragma unroll
    for (uint32_t i = 0; i + 1 < kStages; ++i) {
      if (first + i < end) BeginCopies(i, first + i, groups, my_row);
      EndCopyGroup();
    }
    uint32_t stage = 0;
    for (uint32_t octet = first; octet < end; ++octet) {
      WaitForCopies<kStages - 2>();
      __syncthreads();  // also: the stage before this one has been read
      if (octet + kStages - 1 < end) {
        BeginCopies(stage == 0 ? kStages - 1 : stage - 1, octet + kStages - 1, groups, my_row);
      }
      EndCopyGroup();
      const uint32_t group = kPartialSums * octet + Part();
      if (groups.Has(group)) MultiplyGroup(room_ + stage * Stage::kUnits, group);
      stage = stage + 1 == kStages ? 0 : stage + 1;
    }
  }

  // Calls use(row, input, sum) for every sum of the tile, by some thread. All threads call it.
  template <typename Use>
  __device__ __forceinline__ void ForEachSum(Use use) {
    ShareSums();
    for (uint32_t i = threadIdx.x; i < kRows * kInputs; i += kThreads)
      use(i % kRows, i / kRows, Total(i % kRows, i / kRows));
  }

 private:
  // The partial sum of this warp, and the first of its rows.
  static __device__ __forceinline__ uint32_t Part() { return threadIdx.x / kWarp % kPartialSums; }
  static __device__ __forceinline__ uint32_t FirstRow() {
    return threadIdx.x / (kWarp * kPartialSums) * kRowsOfTileWarp;
  }
  static __device__ __forceinline__ uint32_t InputLane() {
    return threadIdx.x / (kWarp * kPartialSums) * kWarp + threadIdx.x % kWarp;
  }

  // Puts the warps' partial sums where Total finds them.
  __device__ __forceinline__ void ShareSums() const {
    const uint32_t group = threadIdx.x % kWarp / 4, pair = threadIdx.x % 4;
    const SharedArray<float> parts = room_.As<float>();
    __syncthreads();  // the last stage has been read
    const SharedArray<float> mine = parts + (Part() * kSums + FirstRow());
#pragma unroll
    for (uint32_t r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (uint32_t i = 0; i < kInputTiles; ++i) {
#pragma unroll
        for (uint32_t c = 0; c < 4; ++c) {
          mine[(8 * i + 2 * pair + c % 2) * kSumPitch + 16 * r + group + c / 2 * 8] =
              sums_[r][i][c];
        }
      }
    }
    __syncthreads();
  }
  __device__ __forceinline__ float Total(uint32_t row, uint32_t input) const {
    const SharedArray<float> parts = room_.As<float>();
    return TotalOf(
        [&](uint32_t part) -> float { return parts[part * kSums + input * kSumPitch + row]; });
  }

  // Where this lane's copies of inputs come from. A missing input is zeros: all tiles of a launch
  // reading the same one instead would wait for each other at its lines of the L2 cache.
  template <typename Input>
  __device__ __forceinline__ void PointTo(Input input) {
#pragma unroll
    for (uint32_t i = 0; i < kInputCopies; ++i) {
      const uint32_t unit = kInputLanes * i + InputLane(), index = unit / Stage::kGroupUnits;
      from_[i] = kNothing;
      if (unit >= kInputUnits) continue;
      if (index < inputs_) {
        from_[i] = input(index) * Stage::kGroupUnits + unit % Stage::kGroupUnits;
        continue;
      }
#pragma unroll
      for (uint32_t stage = 0; stage < kStages; ++stage)
        room_[stage * Stage::kUnits + InputsAt(Part()) + unit] = make_uint4(0, 0, 0, 0);
    }
  }
  // Those of a warp's group, in a stage.
  static __device__ __forceinline__ uint32_t InputsAt(uint32_t part) {
    return Stage::kInputsAt + part * kInputUnits;
  }

  // Begins the copies of 256 columns to a stage: kCopyLanes threads copy a row, a warp the inputs
  // of its group.
  __device__ __forceinline__ void BeginCopies(uint32_t stage, uint32_t octet, GroupRange groups,
                                              const std::byte* my_row) const {
    const SharedArray<uint4> to = room_ + stage * Stage::kUnits;
    const uint32_t head = Stage::HeadAt(octet), body = Stage::BodyAt(octet);
    const uint32_t units = Stage::UnitsIn(octet, groups);
    const uint32_t row = threadIdx.x / kCopyLanes;
#pragma unroll
    for (uint32_t i = 0; i < Stage::kRowUnits; i += kCopyLanes) {
      const uint32_t unit = i + threadIdx.x % kCopyLanes;
      if (unit >= units) continue;
      const uint32_t from = Stage::kUnit * unit + (unit < Stage::kHeadUnits ? head : body);
      BeginCopy16(to, row * Stage::kRowPitch + unit, my_row + from);
    }
    const uint32_t group = kPartialSums * octet + Part();
    if (!groups.Has(group)) return;
    const uint32_t skipped = (group - groups.begin) * Stage::kGroupUnits;
#pragma unroll
    for (uint32_t i = 0; i < kInputCopies; ++i) {
      if (from_[i] == kNothing) continue;
      BeginCopy16(to, InputsAt(Part()) + kInputLanes * i + InputLane(),
                  x_ + static_cast<size_t>(from_[i] + skipped) * Stage::kUnit);
    }
  }

  // Adds the products of one group. All lanes of the warp.
  __device__ __forceinline__ void MultiplyGroup(SharedArray<uint4> stage, uint32_t group) {
    const SharedArray<uint4> x =
        stage + (Stage::kInputsAt + group % kPartialSums * kInputs * Stage::kGroupUnits);
#pragma unroll
    for (uint32_t first = 0; first < kRowTiles; first += kTilesAtOnce) {
      Weights weights;
      Unpack(stage + (FirstRow() + 16 * first) * Stage::kRowPitch, group, weights);
#pragma unroll
      for (uint32_t i = 0; i < kInputTiles; i += 2) {
        uint32_t b[4];
        LoadInputs(x, i, b);
#pragma unroll
        for (uint32_t j = 0; j < 2; ++j) {
          const uint32_t b_of_tile[2] = {b[2 * j], b[2 * j + 1]};
          MultiplyInputs(weights, first, x, i + j, b_of_tile);
        }
      }
    }
  }

  // Fragments of A of every 16 rows, and the scales of the lane's rows of C: row / 8 % 2 is the
  // second index.
  struct Weights {
    uint32_t a[kTilesAtOnce][4];
    GroupScales scales[kTilesAtOnce][2];
  };

  __device__ __forceinline__ void Unpack(SharedArray<uint4> stage, uint32_t group,
                                         Weights& weights) const {
    const uint32_t lane = threadIdx.x % kWarp;
    const auto of_row = [&](uint32_t row) {
      return Stage::GroupAt(stage, row, group, group % kPartialSums);
    };
    constexpr uint32_t kRowsOfLane = (kRowsAtOnce + kWarp - 1) / kWarp;
    GroupScales of_lane[kRowsOfLane];  // of rows lane, lane + 32
#pragma unroll
    for (uint32_t i = 0; i < kRowsOfLane; ++i) {
      of_lane[i] = F::Scales(of_row((kWarp * i + lane) % kRowsAtOnce));
    }
#pragma unroll
    for (uint32_t r = 0; r < kTilesAtOnce; ++r) {
#pragma unroll
      for (uint32_t half = 0; half < 2; ++half) {
        const uint32_t row = 16 * r + 8 * half + lane / 4;
        weights.a[r][half] = Codes(of_row(row), lane % 4);
        weights.a[r][half + 2] = Codes(of_row(row), lane % 4 + 4);
        weights.scales[r][half] = FromLane(of_lane[r / 2], row % kWarp);
      }
    }
  }

  // A word of codes, less their offset.
  static __device__ __forceinline__ uint32_t Codes(const PackedGroup<StagedBytes>& group,
                                                   uint32_t word) {
    uint32_t codes[1];
    F::Codes(group, word, codes);
    if constexpr (F::kOffset == 0) return codes[0];
    // The top bits, which codes with an offset don't have, keep the bytes apart.
    return ((codes[0] | 0x80808080u) - F::kOffset * 0x01010101u) ^ 0x80808080u;
  }

  static __device__ __forceinline__ GroupScales FromLane(const GroupScales& mine, uint32_t lane) {
    GroupScales scales = {};
#pragma unroll
    for (int i = 0; i < (F::kHalves ? 2 : 1); ++i) {
      scales.scale[i] = __shfl_sync(kAllLanes, mine.scale[i], static_cast<int>(lane));
      if constexpr (F::kHasMin) {
        scales.min[i] = __shfl_sync(kAllLanes, mine.min[i], static_cast<int>(lane));
      }
    }
    return scales;
  }

  // Fragments of B of two tiles of 8 inputs.
  static __device__ __forceinline__ void LoadInputs(SharedArray<uint4> x, uint32_t tile,
                                                    uint32_t (&b)[4]) {
    const uint32_t lane = threadIdx.x % kWarp;
    const uint32_t input = 8 * tile + lane / 16 * 8 + lane % 8, half = lane / 8 % 2;
    LoadMatrices(b, x.As<uint16_t>(), (input * Stage::kGroupUnits + half) * (sizeof(uint4) / 2));
  }

  __device__ __forceinline__ void MultiplyInputs(const Weights& weights, uint32_t first,
                                                 SharedArray<uint4> x, uint32_t tile,
                                                 const uint32_t (&b)[2]) {
    float scale[2];
    HalfSums bytes[2];
#pragma unroll
    for (uint32_t n = 0; n < 2; ++n) {
      const uint32_t input = 8 * tile + threadIdx.x % 4 * 2 + n;
      const uint4 end = x[input * Stage::kGroupUnits + 2];  // of an Int8Group
      scale[n] = __uint_as_float(end.x);
      bytes[n] = HalfSumsOf<kType>(static_cast<int>(end.y), static_cast<int>(end.z));
    }
#pragma unroll
    for (uint32_t r = 0; r < kTilesAtOnce; ++r) {
      HalfSums products[4];
      MultiplyTile(weights.a[r], b, products);
#pragma unroll
      for (uint32_t c = 0; c < 4; ++c) {
        const float product = Scaled<kType>(weights.scales[r][c / 2], products[c], bytes[c % 2]);
        float& sum = sums_[first + r][tile][c];
        sum = fmaf(product, scale[c % 2], sum);
      }
    }
  }

  // Integers are accumulated on top of the bits of 1.5 * 2^23: as floats those are 1.5 * 2^23 plus
  // the integer, so that one subtraction converts them.
  static __device__ __forceinline__ void MultiplyTile(const uint32_t (&a)[4],
                                                      const uint32_t (&b)[2],
                                                      HalfSums (&products)[4]) {
    constexpr float kBase = 0x1.8p23f;
    const int base = __float_as_int(kBase);
    int low[4], high[4];
    if constexpr (F::kHalves) {
      MmaInt8Half(low, a[0], a[1], b[0], base);
      MmaInt8Half(high, a[2], a[3], b[1], base);
    } else {
      MmaInt8(low, a, b, base);
    }
#pragma unroll
    for (uint32_t c = 0; c < 4; ++c) {
      products[c] = {__int_as_float(low[c]) - kBase, 0};
      if constexpr (F::kHalves) products[c].high = __int_as_float(high[c]) - kBase;
    }
  }

  const SharedArray<uint4> room_;
  uint32_t inputs_ = 0;
  const std::byte* x_ = nullptr;
  // Offsets in x_, in units: pointers take twice the registers.
  static constexpr uint32_t kNothing = 0xffffffffu;
  uint32_t from_[kInputCopies];
  float sums_[kRowTiles][kInputTiles][4] = {};
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DEVICE_INT8_TILE_H_
