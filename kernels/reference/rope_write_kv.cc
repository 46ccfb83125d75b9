// Source: Su et al., "RoFormer: enhanced transformer with rotary position embedding", 2021.
#include <cstring>

#include "common/tensor/f16.h"
#include "kernels/host/rope.h"
#include "kernels/reference/ops.h"

namespace tandem::kernels::reference {
namespace {

void Rotate(float* head, const RopeWriteKvParams& p, const float* cos, const float* sin) {
  const uint32_t pairs = p.rotary_dims / 2;
  for (uint32_t i = 0; i < pairs; ++i) {
    float& a = head[p.halves ? i : 2 * i];
    float& b = head[p.halves ? i + pairs : 2 * i + 1];
    const float rotated = a * cos[i] - b * sin[i];
    b = b * cos[i] + a * sin[i];
    a = rotated;
  }
}

// Stores `dim` values at `offset` values into `pages`.
void Store(tensor::Type type, void* pages, size_t offset, const float* values, uint32_t dim) {
  if (type == tensor::Type::kF32) {
    std::memcpy(static_cast<float*>(pages) + offset, values, dim * sizeof(float));
    return;
  }
  auto* const out = static_cast<uint16_t*>(pages) + offset;
  for (uint32_t i = 0; i < dim; ++i) out[i] = tensor::FloatToHalf(values[i]);
}

void RotateAndWriteToken(const RopeWriteKvParams& p, const host::TaskContext& context) {
  const KvPages& pages = p.pages;
  const size_t t = context.task;
  auto* const cos = reinterpret_cast<float*>(context.thread_scratch);
  float* const sin = cos + p.rotary_dims / 2;
  host::RopeAngles(p, p.positions[t], cos, sin);
  for (uint32_t h = 0; h < p.heads; ++h) {
    Rotate(p.q + (t * p.heads + h) * pages.head_dim, p, cos, sin);
  }
  for (uint32_t h = 0; h < pages.kv_heads; ++h) {
    float* const k = p.k + (t * pages.kv_heads + h) * pages.head_dim;
    Rotate(k, p, cos, sin);
    if (p.slots[t] < 0) continue;
    const float* const v = p.v + (t * pages.kv_heads + h) * pages.value_dim;
    Store(pages.type, pages.k, host::PageOffset(pages, p.slots[t], h, pages.head_dim), k,
          pages.head_dim);
    Store(pages.type, pages.v, host::PageOffset(pages, p.slots[t], h, pages.value_dim), v,
          pages.value_dim);
  }
}

}  // namespace

void EncodeRopeWriteKv(host::OpList& list, const RopeWriteKvParams& params) {
  list.ReserveScratch(0, params.rotary_dims * sizeof(float));
  list.Add("rope_write_kv", params.tokens, &RotateAndWriteToken, params);
}

}  // namespace tandem::kernels::reference
