// Location of rows, and of words of K that lies in columns, in the pages of a layer.
#ifndef TANDEM_KERNELS_HOST_PAGES_H_
#define TANDEM_KERNELS_HOST_PAGES_H_

#include <cstddef>
#include <cstdint>

#include "common/tensor/blocks_of_32.h"
#include "common/tensor/type.h"
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

// Calls visit(page, row, bytes) for each piece of the K row of (slot, head) in columns: its byte
// offsets in K's pages and in a row, and its size, 2 or 4. REQUIRES: `k_columns`.
template <typename Visit>
static inline void ForKeyPieces(const KvPages& pages, int32_t slot, uint32_t head, Visit visit) {
  const size_t size = pages.block_size, dim = pages.head_dim;
  const size_t offset = static_cast<uint32_t>(slot) % size;
  const size_t block = PageOffset(pages, slot - static_cast<int32_t>(offset), head,
                                  tensor::RowBytes(pages.type, pages.head_dim));
  const auto visit_all = [&](size_t first, size_t count, size_t bytes, auto in_row) {
    for (size_t i = 0; i < count; ++i) visit(first + (i * size + offset) * bytes, in_row(i), bytes);
  };
  constexpr size_t kHalf = 2, kWord = 4;
  if (pages.type == tensor::Type::kQ8_0) {
    using Block = tensor::BlockQ8_0;
    constexpr size_t kWords = Block::kValues / 4;
    visit_all(block, dim / 4, kWord, [](size_t i) {
      return i / kWords * sizeof(Block) + offsetof(Block, qs) + i % kWords * 4;
    });
    visit_all(block + size * dim, dim / Block::kValues, kHalf,
              [](size_t i) { return i * sizeof(Block) + offsetof(Block, d); });
  } else if (pages.type == tensor::Type::kF16) {
    visit_all(block, dim, kHalf, [](size_t i) { return i * 2; });
  } else {
    const size_t words = dim * tensor::RowBytes(pages.type, 1) / 4;
    visit_all(block, words, kWord, [](size_t i) { return i * 4; });
  }
}

}  // namespace tandem::kernels::host

#endif  // TANDEM_KERNELS_HOST_PAGES_H_
