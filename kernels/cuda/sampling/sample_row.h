// A block's row of a call of Sample (sampling/sample_task.h), on the device.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_SAMPLE_ROW_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_SAMPLE_ROW_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/select_key.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/sampling/sample_task.h"
#include "kernels/cuda/sampling/vocabulary.h"

namespace tandem::kernels::cuda {

static_assert(kGroupIds == kWarp && kMostVocabulary <= kMaxSelectVocabulary);
static_assert((0x3f800000u >> kFirstDigitShift) < kWeightBins);

// The key of a row that cannot be drawn from: larger than every other.
inline constexpr uint64_t kUnusableKey = ~uint64_t{0};

// A block's row of a task, and its part of it.
class SampleRow {
 public:
  __device__ explicit SampleRow(const SampleTask& task)
      : task_(task), row_(blockIdx.x / task.cut.parts), part_(blockIdx.x % task.cut.parts) {}

  __device__ uint32_t number() const { return row_; }
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
  // Whether there are other logits than the given ones, in weights().
  __device__ bool has_changes() const { return num_adjustments() > 0 || wanted().has_mask(); }
  __device__ bool Masks(uint32_t id) const {
    if (!wanted().has_mask()) return false;
    return (task_.params.masks[wanted().mask_begin + id / 32] >> (id % 32) & 1) == 0;
  }
  __device__ float* weights() const { return task_.weights + Times(task_.groups * kGroupIds); }
  __device__ uint32_t* maxima() const { return task_.maxima + Times(task_.groups); }
  __device__ PieceBest* bests() const { return task_.bests + Times(task_.cut.pieces); }
  __device__ double* sums() const { return task_.sums + Times(task_.cut.pieces); }
  __device__ double* moments() const { return task_.moments + Times(task_.cut.pieces); }
  __device__ WeightBins& bins() const { return task_.bins[row_]; }
  __device__ uint32_t& arrived() const { return task_.arrived[row_]; }

 private:
  __device__ size_t Times(uint32_t count) const { return static_cast<size_t>(row_) * count; }

  const SampleTask& task_;
  const uint32_t row_;
  const uint32_t part_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_SAMPLE_ROW_H_
