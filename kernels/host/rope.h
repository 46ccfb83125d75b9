// Parts of RopeWriteKv that every backend on the host must do alike: the angles, and where a slot
// lies in the pages.
#ifndef TANDEM_KERNELS_HOST_ROPE_H_
#define TANDEM_KERNELS_HOST_ROPE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/ops.h"

namespace tandem::kernels::host {

// cos[i], sin[i] of position * inv_freq[i], times magnitude, for i < rotary_dims / 2. The angle is
// a float product, as the models' own training code computes it.
inline void RopeAngles(const RopeWriteKvParams& p, int32_t position, float* cos, float* sin) {
  for (uint32_t i = 0; i < p.rotary_dims / 2; ++i) {
    const float angle = static_cast<float>(position) * p.inv_freq[i];
    cos[i] = std::cos(angle) * p.magnitude;
    sin[i] = std::sin(angle) * p.magnitude;
  }
}

// Index of the first value of (slot, head) in pages with `dim` values per row.
inline size_t PageOffset(const KvPages& pages, int32_t slot, uint32_t head, uint32_t dim) {
  const size_t block = static_cast<uint32_t>(slot) / pages.block_size;
  const size_t offset = static_cast<uint32_t>(slot) % pages.block_size;
  return ((block * pages.kv_heads + head) * pages.block_size + offset) * dim;
}

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_ROPE_H_
