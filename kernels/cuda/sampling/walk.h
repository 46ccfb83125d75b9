// The draw: where a running sum passes a share of the total.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_WALK_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_WALK_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/shared_array.h"
#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {

// A search for the element at which the running sum of non-negative values passes `share` of the
// total. All threads of a block call it; sums are in double, in one order.
template <uint32_t kThreads>
class Walk {
 public:
  // `room` has kBlockReduceRoom values.
  __device__ Walk(double share, SharedArray<double> room) : share_(share), room_(room) {}

  // The element of [begin, end), whose values value_of gives. The first call's total counts; a
  // further one searches the elements that make up the one found before.
  template <typename ValueOf>
  __device__ uint32_t Find(uint32_t begin, uint32_t end, ValueOf value_of) {
    const uint32_t lane = threadIdx.x % kWarp;
    while (end - begin > kWarp) {
      const uint32_t part = (end - begin + kThreads - 1) / kThreads * kWarp;
      const uint32_t at = FindPart(begin, end, part, value_of);
      begin += at * part;
      end = begin + part < end ? begin + part : end;
    }
    return begin + Pass(begin + lane < end ? value_of(begin + lane) : 0.0);
  }

 private:
  static constexpr uint32_t kWarps = kThreads / kWarp;

  // Of the warps' parts of `part` elements each.
  template <typename ValueOf>
  __device__ uint32_t FindPart(uint32_t begin, uint32_t end, uint32_t part, ValueOf value_of) {
    const uint32_t lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    const uint32_t from = begin + warp * part;
    const uint32_t to = from + part < end ? from + part : end;
    double sum = 0;
#pragma unroll 8
    for (uint32_t i = from + lane; i < to; i += kWarp) sum += value_of(i);
    sum = WarpSum(sum);
    __syncthreads();  // the room's previous sums have been read
    if (lane == 0) room_[warp] = sum;
    __syncthreads();
    return Pass(lane < kWarps ? static_cast<double>(room_[lane]) : 0.0);
  }

  // The lane in whose value the running sum passes what is left of the draw; if rounding leaves a
  // remainder, the last one with a value, and so on within it. All warps do the same.
  __device__ uint32_t Pass(double mine) {
    const uint32_t lane = threadIdx.x % kWarp;
    double sum = mine;
#pragma unroll
    for (uint32_t delta = 1; delta < kWarp; delta *= 2) {
      const double other = __shfl_up_sync(kAllLanes, sum, delta);
      if (lane >= delta) sum += other;
    }
    if (left_ < 0) left_ = share_ * __shfl_sync(kAllLanes, sum, kWarp - 1);
    const uint32_t filled = __ballot_sync(kAllLanes, mine > 0);
    const uint32_t passed = __ballot_sync(kAllLanes, mine > 0 && left_ < sum);
    const int at =
        passed != 0 ? __ffs(static_cast<int>(passed)) - 1 : 31 - __clz(static_cast<int>(filled));
    const double before = at > 0 ? __shfl_sync(kAllLanes, sum, at - 1) : 0.0;
    const double left = left_ > before ? left_ - before : 0.0;
    left_ = passed != 0 ? left : INFINITY;
    return static_cast<uint32_t>(at);
  }

  const double share_;
  double left_ = -1;  // of the sum from the next element on; negative: no total yet
  const SharedArray<double> room_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_WALK_H_
