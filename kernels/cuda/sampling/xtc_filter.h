// The filter XTC of Sample, which drops ids from the top of a row's candidates: it sets weights to
// zero. A block works on one row; all of its threads call it. Sums are in double, in one order.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_XTC_FILTER_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_XTC_FILTER_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/select.h"
#include "kernels/cuda/device/select_key.h"
#include "kernels/cuda/sampling/kept_candidates.h"

namespace tandem::kernels::cuda {

// Of the ids with a share of at least `threshold` keeps only the lightest, the last one of equals.
// `keys` has kBlockReduceRoom values.
template <uint32_t kThreads>
__device__ void DropTopChoices(const KeptCandidates<kThreads>& kept, float threshold,
                               const SelectRoom& room, SharedArray<uint64_t> keys) {
  double sum = 0;
  kept.ForEach([&](uint32_t, float weight) { sum += weight; });
  const double least = threshold * BlockSum(sum, room.doubles);
  uint64_t last = 0;  // inverted: the largest is of the lightest
  kept.ForEach([&](uint32_t id, float weight) {
    if (!(weight >= least)) return;
    const uint64_t inverted = ~SelectKey(__float_as_uint(weight), id);
    if (inverted > last) last = inverted;
  });
  last = BlockMax(last, keys);
  if (last == 0) return;
  kept.ForEach([&](uint32_t id, float weight) {
    // Every thread reads and writes its own candidates.
    if (IsAtLeast(weight, id, ~last + 1)) kept.Drop(id);
  });
  __syncthreads();
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_XTC_FILTER_H_
