// Parts of RopeWriteKv that every backend on the host must do alike: the angles, and where a slot
// lies in the pages.
#ifndef TANDEM_KERNELS_HOST_ROPE_H_
#define TANDEM_KERNELS_HOST_ROPE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/ops.h"

namespace tandem::kernels::host {

// cos[i], sin[i] of position * inv_freq[i], times magnitude, for i < rotary_dims / 2. The angle is
// a float product, as the models' own training code computes it.
void RopeAngles(const RopeWriteKvParams& params, int32_t position, float* cos, float* sin);

// Index of the first value of (slot, head) in pages with `dim` values per row. Static: files of one
// instruction set have a copy of their own.
static inline size_t PageOffset(const KvPages& pages, int32_t slot, uint32_t head, uint32_t dim) {
  const size_t block = static_cast<uint32_t>(slot) / pages.block_size;
  const size_t offset = static_cast<uint32_t>(slot) % pages.block_size;
  return ((block * pages.kv_heads + head) * pages.block_size + offset) * dim;
}

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_ROPE_H_
