// How a launch with a RopeEnd ends, with the bits that RopeWriteKv would give after it.
#ifndef TANDEM_KERNELS_CUDA_MATMUL_ROPE_PAIR_H_
#define TANDEM_KERNELS_CUDA_MATMUL_ROPE_PAIR_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/attention/rope.h"
#include "kernels/cuda/matmul/gemv.h"
#include "kernels/cuda/matmul/rope_end.h"
#include "kernels/cuda/matmul/rope_units.h"
#include "kernels/ops.h"

namespace tandem::kernels::cuda {

// Two rows of a part, whose sums are stored together. What is the same for all tokens is computed
// once.
class RopePair {
 public:
  // Row i of a unit, the first of a pair, and the second.
  template <uint32_t kRows>
  __device__ __forceinline__ RopePair(const RopeEnd& end, const MatVecPart& part, uint32_t index,
                                      const RopeUnits<kRows>& units, uint32_t unit, uint32_t i)
      : p_(end.write),
        part_(part),
        is_q_(index == kQueryPart),
        is_v_(index == kValuePart),
        width_(is_v_ ? p_.pages.value_dim : p_.pages.head_dim),
        row_{units.Row(unit, i), units.Row(unit, i + units.Distance())} {
#pragma unroll
    for (uint32_t j = 0; j < 2; ++j) {
      has_[j] = row_[j] < part.rows;
      bias_[j] = has_[j] && part.bias != nullptr ? part.bias[row_[j]] : 0.0f;
      in_pages_[j] = row_[j] / width_ * p_.pages.block_size * width_ + row_[j] % width_;
    }
    const uint32_t dim = row_[0] % width_;
    rotates_ = !is_v_ && dim < p_.rotary_dims;
    if (rotates_) inv_freq_ = p_.inv_freq[p_.halves ? dim : dim / 2];
  }

  // The sums of a token.
  __device__ __forceinline__ void Store(uint32_t token, float first, float second) const {
    // Before anything is stored: no load waits for a store.
    const int32_t position = rotates_ ? p_.positions[token] : 0;
    const int32_t slot = is_q_ ? -1 : p_.slots[token];
    float values[2] = {WithBias(first, 0), WithBias(second, 1)};
    if (rotates_) Rotate(RotationOf(position, inv_freq_, p_.magnitude), values[0], values[1]);
    float* const y = part_.y + static_cast<size_t>(token) * part_.y_stride;
    const size_t in_pages = slot < 0 ? 0 : PageRow(p_.pages, slot) * width_;
#pragma unroll
    for (uint32_t j = 0; j < 2; ++j) {
      if (!has_[j]) continue;
      if (!is_v_) y[row_[j]] = values[j];
      if (slot < 0) continue;
      StorePageValue(p_.pages.type, is_v_ ? p_.pages.v : p_.pages.k, in_pages + in_pages_[j],
                     values[j]);
    }
  }

 private:
  // As store_sum.h: no bias leaves a sum as it is, -0 too.
  __device__ __forceinline__ float WithBias(float sum, uint32_t j) const {
    return part_.bias != nullptr ? sum + bias_[j] : sum;
  }

  const RopeWriteKvParams& p_;
  const MatVecPart& part_;
  const bool is_q_, is_v_;
  const uint32_t width_;  // of a head
  const uint32_t row_[2];
  bool has_[2];
  float bias_[2];
  uint32_t in_pages_[2];  // from the token's first head
  bool rotates_;
  float inv_freq_ = 0;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MATMUL_ROPE_PAIR_H_
