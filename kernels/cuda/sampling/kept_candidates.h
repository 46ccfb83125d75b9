// The candidates that a filter's predecessors have left: those with a weight, and a key
// (device/select_key.h) of at least `least`.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_KEPT_CANDIDATES_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_KEPT_CANDIDATES_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/select_key.h"
#include "kernels/cuda/sampling/candidates.h"

namespace tandem::kernels::cuda {

template <uint32_t kThreads>
class KeptCandidates {
 public:
  __device__ KeptCandidates(const Candidates& candidates, uint64_t least)
      : candidates_(candidates), least_(least) {}

  // Calls f(number, weight) for each, by one, always the same, thread of the block.
  template <typename F>
  __device__ __forceinline__ void ForEach(F f) const {
    candidates_.template ForEach<kThreads>([&](uint32_t id, float weight) {
      if (weight > 0 && IsAtLeast(weight, id, least_)) f(id, weight);
    });
  }
  __device__ void Drop(uint32_t id) const { candidates_.Drop(id); }
  // Of all candidates: numbers are below it.
  __device__ uint32_t size() const { return candidates_.size(); }

 private:
  const Candidates candidates_;
  const uint64_t least_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_KEPT_CANDIDATES_H_
