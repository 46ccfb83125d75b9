// A warp's way through rows of packs: products of some rows at a time with the inputs of a few
// tokens, at the speed of memory.
//
// A lane has two rows, which share the inputs it reads (row_tasks.h): a warp eight. 256 columns of
// all its rows, with their inputs, are a stage, which comes to shared memory by
// asynchronous copies ahead of time, that of the next rows while these are added up. No other warp
// reads a stage: waiting for one is the warp's own business, and warps do not meet. The first rows
// are on their way before the kernel that writes the inputs has ended (device/launch_order.h), all
// of the first steps in one group of copies: the first step waits for them all.
//
// A step is a few stages whose products do not wait for each other: few warps hide little.
//
// Floor: the bytes of the rows are read once; to read 4.4 TB/s with a latency of 0.8 us a
// multiprocessor of 132 needs 27 KB on their way.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_WARP_ROWS_H_
#define TANDEM_KERNELS_CUDA_MATMUL_WARP_ROWS_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/async_copy.h"
#include "kernels/cuda/device/blocks.h"
#include "kernels/cuda/device/int8_stage.h"
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/matmul/row_tasks.h"

namespace tandem::kernels::cuda {

template <tensor::Type kType, int kTokens>
class WarpRows : public RowsOfWarp<kTokens, 2> {
  static constexpr int kRowsOfLane = 2;

 public:
  using typename RowsOfWarp<kTokens, kRowsOfLane>::Sums;
  using RowsOfWarp<kTokens, kRowsOfLane>::kRows;
  using RowsOfWarp<kTokens, kRowsOfLane>::kRowStep;

 private:
  using Stage = Int8Stage<kType, kRows, kTokens>;
  // Of a step: sums in flight are as many for any number of tokens.
  static constexpr uint32_t kStepStages = std::max(4 / (kTokens * kRowsOfLane), 1);
  // Steps, this one included, of about so many bytes in all: two blocks of eight warps fit.
  static constexpr uint32_t kWarpBytes = 12288;
  static constexpr uint32_t kSteps =
      std::clamp<uint32_t>(kWarpBytes / (kStepStages * Stage::kUnits * kPackUnit), 2, 6);
  static constexpr uint32_t kCopies = (kRows * Stage::kRowUnits + kWarp - 1) / kWarp;
  static constexpr uint32_t kInputUnits = kPartialSums * Stage::kGroupUnits;  // of a token

 public:
  // uint4s of shared memory that a warp needs.
  static constexpr uint32_t kRoom = kSteps * kStepStages * Stage::kUnits;

  __device__ __forceinline__ WarpRows(const BlockMatVecInputs& in, SharedArray<uint4> room)
      : in_(in),
        range_{in.first_group, in.groups},
        room_(room),
        lane_(threadIdx.x % kWarp),
        begin_(in.first_group / kPartialSums),
        end_((in.first_group + in.groups + kPartialSums - 1) / kPartialSums) {}

  // row(task, i) points to row i of a task, i below kRows, or to any row if it has none; i / 4 is
  // the first index of the sums. Calls use(task, partial sums of this lane) for every task, in
  // order. All lanes call it, once.
  template <typename Row, typename Use>
  __device__ __forceinline__ void ForEachTask(const WarpTasks& tasks, Row row, Use use) {
    BeginFirst(tasks, row);
    uint32_t step = 0, free = kSteps - 1;
    for (uint32_t task = tasks.first; task < tasks.end; task += tasks.step) {
      Sums sums = {};
      for (uint32_t octet = begin_; octet < end_; octet += kStepStages) {
        WaitForCopies<kSteps - 2>();
        __syncwarp();  // also: the step before this one has been read
        BeginNext(free, tasks, row);
        AddStep(step, octet, sums);
        free = step;
        step = step + 1 == kSteps ? 0 : step + 1;
      }
      use(task, sums);
    }
  }

 private:
  // Where this lane's copies of a task's rows come from.
  template <typename Row>
  __device__ __forceinline__ void PointTo(Row row) {
#pragma unroll
    for (uint32_t i = 0; i < kCopies; ++i) {
      const uint32_t unit = kWarp * i + lane_;
      if (unit >= kRows * Stage::kRowUnits) continue;
      from_[i] = row(ahead_, unit / Stage::kRowUnits) + unit % Stage::kRowUnits * kPackUnit;
    }
  }

  __device__ __forceinline__ SharedArray<uint4> StageOf(uint32_t step, uint32_t i) const {
    return room_ + (step * kStepStages + i) * Stage::kUnits;
  }

  // Begins the copies of the first steps, of inputs when they are there.
  template <typename Row>
  __device__ __forceinline__ void BeginFirst(const WarpTasks& tasks, Row row) {
    ahead_ = tasks.first;
    ahead_octet_ = begin_;
    if (ahead_ < tasks.end) PointTo(row);
    uint32_t octets[kSteps - 1];
    bool there[kSteps - 1];
#pragma unroll
    for (uint32_t i = 0; i + 1 < kSteps; ++i) {
      octets[i] = ahead_octet_;
      there[i] = ahead_ < tasks.end;
      if (!there[i]) continue;
      CopyRows(i, ahead_octet_);
      Advance(tasks, row);
    }
    FollowEarlierLaunches();
#pragma unroll
    for (uint32_t i = 0; i + 1 < kSteps; ++i) {
      if (there[i]) CopyInputs(i, octets[i]);
      EndCopyGroup();
    }
  }
  // Begins the copies of the next step, if there is one.
  template <typename Row>
  __device__ __forceinline__ void BeginNext(uint32_t step, const WarpTasks& tasks, Row row) {
    if (ahead_ < tasks.end) {
      CopyRows(step, ahead_octet_);
      CopyInputs(step, ahead_octet_);
      Advance(tasks, row);
    }
    EndCopyGroup();
  }
  template <typename Row>
  __device__ __forceinline__ void Advance(const WarpTasks& tasks, Row row) {
    ahead_octet_ += kStepStages;
    if (ahead_octet_ < end_) return;
    ahead_octet_ = begin_;
    ahead_ += tasks.step;
    if (ahead_ < tasks.end) PointTo(row);
  }
  __device__ __forceinline__ void CopyRows(uint32_t step, uint32_t first) const {
#pragma unroll
    for (uint32_t s = 0; s < kStepStages; ++s) {
      const uint32_t octet = first + s;
      if (octet >= end_) continue;
      const uint32_t head = Stage::HeadAt(octet), body = Stage::BodyAt(octet);
      const uint32_t units = Stage::UnitsIn(octet, range_);
#pragma unroll
      for (uint32_t i = 0; i < kCopies; ++i) {
        const uint32_t at = kWarp * i + lane_, unit = at % Stage::kRowUnits;
        if (at >= kRows * Stage::kRowUnits || unit >= units) continue;
        BeginCopy16(StageOf(step, s), at / Stage::kRowUnits * Stage::kRowPitch + unit,
                    from_[i] + (unit < Stage::kHeadUnits ? head : body));
      }
    }
  }
  // All warps of a multiprocessor read the same inputs, from its L1 cache.
  __device__ __forceinline__ void CopyInputs(uint32_t step, uint32_t first) const {
    if (lane_ >= kInputUnits) return;
#pragma unroll
    for (uint32_t s = 0; s < kStepStages; ++s) {
      const uint32_t group = kPartialSums * (first + s) + lane_ / Stage::kGroupUnits;
      if (!range_.Has(group)) continue;
      const auto* from = reinterpret_cast<const std::byte*>(in_.x + (group - in_.first_group)) +
                         lane_ % Stage::kGroupUnits * kPackUnit;
#pragma unroll
      for (uint32_t t = 0; t < kTokens; ++t) {
        BeginCachedCopy16(StageOf(step, s), Stage::kInputsAt + t * kInputUnits + lane_, from);
        if (t + 1 < in_.tokens) from += size_t{in_.groups} * sizeof(Int8Group);
      }
    }
  }

  __device__ __forceinline__ void AddStep(uint32_t step, uint32_t first, Sums& sums) const {
    const uint32_t in_octet = lane_ % kPartialSums, group = kPartialSums * first + in_octet;
    // All lanes alike where a product begins and ends with whole octets.
    if (range_.Has(group) && range_.Has(group + kPartialSums * (kStepStages - 1))) {
#pragma unroll
      for (uint32_t s = 0; s < kStepStages; ++s)
        AddProducts(StageOf(step, s), group + kPartialSums * s, in_octet, sums);
      return;
    }
#pragma unroll 1
    for (uint32_t s = 0; s < kStepStages; ++s) {
      if (range_.Has(group + kPartialSums * s))
        AddProducts(StageOf(step, s), group + kPartialSums * s, in_octet, sums);
    }
  }

  // Adds the products of this lane's group of each of its rows with those of all tokens.
  __device__ __forceinline__ void AddProducts(SharedArray<uint4> stage, uint32_t group,
                                              uint32_t in_octet, Sums& sums) const {
    WeightGroup<kType> weights[kRowsOfLane];
#pragma unroll
    for (uint32_t r = 0; r < kRowsOfLane; ++r) {
      const uint32_t row = kRowStep * r + lane_ / kPartialSums;
      const auto at = Stage::GroupAt(stage, row, group, in_octet);
      Format<kType>::Codes(at, 0, weights[r].codes);
      weights[r].scales = Format<kType>::Scales(at);
    }
#pragma unroll
    for (uint32_t t = 0; t < kTokens; ++t) {
      const uint32_t at = Stage::kInputsAt + t * kInputUnits + in_octet * Stage::kGroupUnits;
      const Int8Group x = LoadInt8Group(StagedBytes{stage.As<uint32_t>(), at * kPackUnit});
#pragma unroll
      for (uint32_t r = 0; r < kRowsOfLane; ++r) {
        sums[r][t] = MultiplyAdd(weights[r], x, sums[r][t]);
      }
    }
  }

  const BlockMatVecInputs& in_;
  const GroupRange range_;
  const SharedArray<uint4> room_;
  const uint32_t lane_;
  const uint32_t begin_, end_;  // octets: 256 columns
  // The task whose copies begin next, and the first octet of that step.
  uint32_t ahead_ = 0;
  uint32_t ahead_octet_ = 0;
  const std::byte* from_[kCopies];
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_WARP_ROWS_H_
