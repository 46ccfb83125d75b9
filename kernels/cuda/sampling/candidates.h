// The ids of a row that filters have to look at: groups of kWarp neighbours, in order of ids.
//
// A group is taken for its largest weight, so smaller ones come with it. That changes nothing for
// the filters, which order by weight, and a group is as many bytes as memory gives at once.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_CANDIDATES_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_CANDIDATES_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/device/scan.h"
#include "kernels/cuda/device/select_key.h"
#include "kernels/cuda/device/shared_array.h"
#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {

class Candidates {
 public:
  // `groups` has room for every group of the row.
  __device__ Candidates(float* weights, SharedArray<uint16_t> groups)
      : weights_(weights), groups_(groups) {}

  // Takes the groups with a positive weight of which the first digit is at least `digit`. `maxima`
  // has the bits of the largest weight of each of `count` groups. All threads of a block call it.
  template <uint32_t kThreads>
  __device__ void Take(const uint32_t* maxima, uint32_t count, uint32_t digit,
                       SharedArray<uint32_t> room) {
    const uint32_t each = (count + kThreads - 1) / kThreads;
    const uint32_t begin = min(threadIdx.x * each, count), end = min(begin + each, count);
    const auto is_taken = [&](uint32_t group) {
      return maxima[group] != 0 && maxima[group] >> kFirstDigitShift >= digit;
    };
    uint32_t mine = 0;
    for (uint32_t group = begin; group < end; ++group) mine += is_taken(group) ? 1 : 0;
    const Scan<uint32_t> scan = BlockScan(mine, room);
    uint32_t at = scan.before;
    for (uint32_t group = begin; group < end; ++group) {
      if (is_taken(group)) groups_[at++] = static_cast<uint16_t>(group);
    }
    size_ = scan.total * kWarp;
    __syncthreads();
  }

  // Candidates are numbered in order of ids.
  __device__ uint32_t size() const { return size_; }
  __device__ uint32_t IdOf(uint32_t i) const {
    return static_cast<uint32_t>(groups_[i / kWarp]) * kWarp + i % kWarp;
  }
  __device__ float operator[](uint32_t i) const { return weights_[IdOf(i)]; }
  __device__ void Drop(uint32_t i) const { weights_[IdOf(i)] = 0.0f; }

  // Calls f(i, weight) for all of them, each by one, always the same, thread of the block: four
  // neighbours at a time, and several loads in flight.
  template <uint32_t kThreads, typename F>
  __device__ __forceinline__ void ForEach(F f) const {
    constexpr uint32_t kLoads = 2;
    for (uint32_t begin = 4 * threadIdx.x; begin < size_; begin += 4 * kLoads * kThreads) {
      float4 fours[kLoads];
#pragma unroll
      for (uint32_t j = 0; j < kLoads; ++j) {
        const uint32_t i = begin + 4 * j * kThreads;
        fours[j] = i < size_ ? FourAt(i) : float4{0, 0, 0, 0};
      }
#pragma unroll
      for (uint32_t j = 0; j < kLoads; ++j) {
        const uint32_t i = begin + 4 * j * kThreads;
        if (i >= size_) break;
        f(i, fours[j].x);
        f(i + 1, fours[j].y);
        f(i + 2, fours[j].z);
        f(i + 3, fours[j].w);
      }
    }
  }
  // Of candidates i to i + 3; i is a multiple of 4.
  __device__ float4 FourAt(uint32_t i) const {
    return *reinterpret_cast<const float4*>(weights_ + IdOf(i));
  }

 private:
  float* const weights_;
  const SharedArray<uint16_t> groups_;
  uint32_t size_ = 0;
};
static_assert(kMaxSelectVocabulary / kWarp <= 1u << 16);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_CANDIDATES_H_
