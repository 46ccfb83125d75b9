// The KV cache of one layer.
#ifndef TANDEM_KERNELS_OPS_KV_PAGES_H_
#define TANDEM_KERNELS_OPS_KV_PAGES_H_

#include <cstddef>
#include <cstdint>

#include "common/tensor/type.h"
#include "kernels/ops/array.h"

namespace tandem::kernels {

// The pages of one layer: K is (num_blocks, kv_heads, block_size, head_dim), V the same with
// value_dim. F32, F16, BF16, or Q8_0 if both sizes are multiples of 32. With `latent` there is no
// V: a V row is the first value_dim values of the K row (MLA, arXiv:2405.04434, section 2.1).
//
// With `k_columns`, which a backend asks for (Backend::WantsKeyColumns), K of a block and head is
// (head_dim / w, block_size, w) instead: words of w values, 4 bytes or one F16 number, with those
// of neighbouring positions side by side. w is 1 for F32 and F16, 2 for BF16, 4 for the integers of
// Q8_0, whose scales (head_dim / 32, block_size) follow. host/pages.h finds them.
struct KvPages {
  tensor::Type type = tensor::Type::kF16;
  void* k = nullptr;
  void* v = nullptr;
  uint32_t num_blocks = 0;
  uint32_t block_size = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t value_dim = 0;
  bool latent = false;  // v is null
  bool k_columns = false;

  template <class Pages, class Visit>
  static void ForEachPointer(Pages& pages, Access access, Visit&& visit) {
    const size_t rows = size_t{pages.num_blocks} * pages.kv_heads * pages.block_size;
    Array k = Dense(access, rows, pages.head_dim), v = Dense(access, rows, pages.value_dim);
    k.type = v.type = pages.type;
    visit("k pages", pages.k, k);
    if (!pages.latent) visit("v pages", pages.v, v);
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_KV_PAGES_H_
