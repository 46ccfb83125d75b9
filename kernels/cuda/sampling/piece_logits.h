// A thread's logits of a piece (sampling/pieces.h), loaded at once.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_PIECE_LOGITS_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_PIECE_LOGITS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/sampling/pieces.h"

namespace tandem::kernels::cuda {

// Ids beyond the vocabulary have -inf.
template <uint32_t kThreads>
class PieceLogits {
 public:
  __device__ PieceLogits(const float* x, uint32_t piece, uint32_t vocab)
      : first_id_(piece * kThreads * kIdsPerThread + threadIdx.x) {
#pragma unroll
    for (uint32_t j = 0; j < kIdsPerThread; ++j)
      values_[j] = IdOf(j) < vocab ? x[IdOf(j)] : -INFINITY;
  }

  // Of the thread's j-th id. Ids of a warp are neighbours.
  __device__ uint32_t IdOf(uint32_t j) const { return first_id_ + j * kThreads; }
  __device__ float operator[](uint32_t j) const { return values_[j]; }

  // Calls f(id, logit) for the thread's ids, in ascending order.
  template <typename F>
  __device__ void ForEach(F f) const {
#pragma unroll
    for (uint32_t j = 0; j < kIdsPerThread; ++j) f(IdOf(j), values_[j]);
  }

 private:
  const uint32_t first_id_;
  float values_[kIdsPerThread];
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_PIECE_LOGITS_H_
