// The sum of weights, and of each times its logarithm.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_WEIGHT_MOMENTS_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_WEIGHT_MOMENTS_H_

#include <cuda_runtime.h>

#include "kernels/cuda/device/logits.h"
#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {

struct WeightMoments {
  double sum = 0;
  double moment = 0;

  __device__ void Add(float weight) {
    if (!(weight > 0)) return;
    sum += weight;
    moment += double{weight} * LogOfWeight(weight);
  }
  __device__ void Add(const WeightMoments& other) {
    sum += other.sum;
    moment += other.moment;
  }
};

// Of all threads of a block, in every one of them.
__device__ inline WeightMoments BlockSum(const WeightMoments& mine, SharedArray<double> room) {
  return {BlockSum(mine.sum, room), BlockSum(mine.moment, room)};
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_WEIGHT_MOMENTS_H_
