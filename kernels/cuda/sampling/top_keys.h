// The largest few of a block's keys (device/select_key.h), in order: first those of each warp, from
// registers, then those of the warps' lists.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_TOP_KEYS_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_TOP_KEYS_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/base/limits.h"
#include "kernels/cuda/device/shared_array.h"
#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {

template <uint32_t kThreads>
class TopKeys {
 public:
  __device__ explicit TopKeys(SharedArena& arena)
      : lists_(arena.Take<uint64_t>(kWarps * kMaxTopLogprobs)),
        top_(arena.Take<uint64_t>(kMaxTopLogprobs)) {}
  static constexpr size_t kSharedBytes = SharedBytes<uint64_t>(kThreads / kWarp * kMaxTopLogprobs) +
                                         SharedBytes<uint64_t>(kMaxTopLogprobs);

  // Finds the `count` largest keys, at most kMaxTopLogprobs, of which each thread has `keys`; 0 is
  // none, others differ. All threads of a block call it, and may read the result until they do so
  // again.
  template <uint32_t kKeys>
  __device__ void Find(uint64_t (&keys)[kKeys], uint32_t count) const {
    const uint32_t warp = threadIdx.x / kWarp;
    TakeLargest(keys, count, lists_ + warp * kMaxTopLogprobs);
    __syncthreads();
    if (warp == 0) MergeLists(count);
    __syncthreads();
  }
  // The i-th largest.
  __device__ uint64_t operator[](uint32_t i) const { return top_[i]; }

 private:
  static constexpr uint32_t kWarps = kThreads / kWarp;
  static_assert(kWarps <= kWarp);

  // Moves the warp's largest keys to `list`, in order.
  template <uint32_t kKeys>
  __device__ static void TakeLargest(uint64_t (&keys)[kKeys], uint32_t count,
                                     SharedArray<uint64_t> list) {
    for (uint32_t i = 0; i < count; ++i) {
      uint64_t largest = 0;
#pragma unroll
      for (uint32_t j = 0; j < kKeys; ++j) largest = keys[j] > largest ? keys[j] : largest;
      largest = WarpMax(largest);
#pragma unroll
      for (uint32_t j = 0; j < kKeys; ++j) keys[j] = keys[j] == largest ? 0 : keys[j];
      if (threadIdx.x % kWarp == 0) list[i] = largest;
    }
  }

  // By one warp, of which each lane has a list.
  __device__ void MergeLists(uint32_t count) const {
    const uint32_t lane = threadIdx.x;
    uint32_t taken = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t mine =
          lane < kWarps ? static_cast<uint64_t>(lists_[lane * kMaxTopLogprobs + taken]) : 0;
      const uint64_t largest = WarpMax(mine);
      taken += mine == largest ? 1 : 0;
      if (lane == 0) top_[i] = largest;
    }
  }

  const SharedArray<uint64_t> lists_;  // (warps, kMaxTopLogprobs)
  const SharedArray<uint64_t> top_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_TOP_KEYS_H_
