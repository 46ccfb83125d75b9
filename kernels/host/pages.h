// Location of a row in the pages of a layer.
#ifndef TANDEM_KERNELS_HOST_PAGES_H_
#define TANDEM_KERNELS_HOST_PAGES_H_

#include <cstddef>
#include <cstdint>

#include "kernels/ops.h"

namespace tandem::kernels::host {

// Byte offset of the row of (slot, head) in pages whose rows take `row_bytes`
// (tensor::RowBytes of the type and dimension). Static: files of each instruction set have their
// own copy.
static inline size_t PageOffset(const KvPages& pages, int32_t slot, uint32_t head,
                                size_t row_bytes) {
  const size_t block = static_cast<uint32_t>(slot) / pages.block_size;
  const size_t offset = static_cast<uint32_t>(slot) % pages.block_size;
  return ((block * pages.kv_heads + head) * pages.block_size + offset) * row_bytes;
}

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_PAGES_H_
