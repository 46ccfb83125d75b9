// A call of Sample on the device: its rows, cut into pieces, and what the kernels of a call leave
// for each other in scratch.
//
// A row's pieces are the same whatever the call: its sums are formed per piece and added in the
// order of pieces, so that no bit depends on how many blocks share the row.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_SAMPLE_TASK_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_SAMPLE_TASK_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/select_key.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// Ids of a piece per thread of a block.
inline constexpr uint32_t kIdsPerThread = 4;
// Weights are at most 1, so that of the first digits of their bits only so many occur.
inline constexpr uint32_t kWeightBins = 512;
static_assert((0x3f800000u >> kFirstDigitShift) < kWeightBins);

// The key of a row that cannot be drawn from: larger than every other.
inline constexpr uint64_t kUnusableKey = ~uint64_t{0};

// The largest logits of a piece as keys (device/select_key.h); 0 if all of them are -inf,
// kUnusableKey if one is NaN or +inf.
struct PieceBest {
  uint64_t given;
  uint64_t adjusted;
};

// What the weights of a row whose bits begin with the same digit add up to: of rows that begin with
// top_k, how many they are, in `low`; of those that begin with top_p, the sums of the halves of
// their significands (device/select_key.h). Filled by integer atomics, so in any order.
struct WeightBins {
  uint32_t low[kWeightBins];
  uint32_t high[kWeightBins];
};

struct SampleTask {
  SampleParams params;
  uint32_t pieces;  // of a row
  uint32_t groups;  // of a row: runs of kWarp ids
  uint32_t parts;   // blocks that share a row; part i has every parts-th piece from i on

  // In scratch, per row.
  float* weights;    // (groups * kWarp) adjusted logits, then weights
  uint32_t* maxima;  // (groups) the bits of a group's largest weight
  PieceBest* bests;  // (pieces)
  double* sums;      // (pieces) of weights
  WeightBins* bins;
  uint32_t* arrived;  // parts of which all weights are written
};

// A block's row of a task, and its part of it.
class SampleRow {
 public:
  __device__ explicit SampleRow(const SampleTask& task)
      : task_(task), row_(blockIdx.x / task.parts), part_(blockIdx.x % task.parts) {}

  __device__ uint32_t part() const { return part_; }
  __device__ const SamplingRow& wanted() const { return task_.params.rows[row_]; }
  __device__ const float* logits() const {
    return task_.params.logits + static_cast<size_t>(wanted().logits_row) * task_.params.vocab;
  }
  __device__ const LogitAdjustment* adjustments() const {
    return task_.params.adjustments + wanted().adjustments_begin;
  }
  __device__ uint32_t num_adjustments() const {
    return static_cast<uint32_t>(wanted().adjustments_end - wanted().adjustments_begin);
  }
  __device__ float* weights() const { return task_.weights + Times(task_.groups * kWarp); }
  __device__ uint32_t* maxima() const { return task_.maxima + Times(task_.groups); }
  __device__ PieceBest* bests() const { return task_.bests + Times(task_.pieces); }
  __device__ double* sums() const { return task_.sums + Times(task_.pieces); }
  __device__ WeightBins& bins() const { return task_.bins[row_]; }
  __device__ uint32_t& arrived() const { return task_.arrived[row_]; }
  __device__ int32_t& out() const { return task_.params.out[row_]; }

 private:
  __device__ size_t Times(uint32_t count) const { return static_cast<size_t>(row_) * count; }

  const SampleTask& task_;
  const uint32_t row_;
  const uint32_t part_;
};

// Calls f(id, x[id]) for all ids of a piece, each by one thread, always the same, in ascending
// order. Ids beyond the vocabulary have -inf.
template <uint32_t kThreads, typename F>
__device__ void ForEachOfPiece(const float* x, uint32_t piece, uint32_t vocab, F f) {
  const uint32_t begin = piece * kThreads * kIdsPerThread + threadIdx.x;
  float values[kIdsPerThread];
#pragma unroll
  for (uint32_t j = 0; j < kIdsPerThread; ++j) {
    const uint32_t id = begin + j * kThreads;
    values[j] = id < vocab ? x[id] : -INFINITY;
  }
#pragma unroll
  for (uint32_t j = 0; j < kIdsPerThread; ++j) f(begin + j * kThreads, values[j]);
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_SAMPLE_TASK_H_
