// Source: Su et al., "RoFormer: enhanced transformer with rotary position embedding", 2021.
#include <cmath>

#include "kernels/host/pages.h"
#include "kernels/host/rope.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/page_row.h"

namespace tandem::kernels::reference {
namespace {

void Rotate(float* head, const RopeWriteKvParams& p, const float* cos, const float* sin) {
  float* const dims = head + p.rotary_begin;
  const uint32_t pairs = p.rotary_dims / 2;
  for (uint32_t i = 0; i < pairs; ++i) {
    float& a = dims[p.halves ? i : 2 * i];
    float& b = dims[p.halves ? i + pairs : 2 * i + 1];
    const float rotated = a * cos[i] - b * sin[i];
    b = b * cos[i] + a * sin[i];
    a = rotated;
  }
}

// Divides by the root mean square, if the heads are normed, and multiplies by `factor`.
void Scale(float* head, const RopeWriteKvParams& p, float factor) {
  const uint32_t dim = p.pages.head_dim;
  double scale = factor;
  if (p.norm_epsilon > 0.0f) {
    double squares = 0;
    for (uint32_t i = 0; i < dim; ++i) squares += double{head[i]} * head[i];
    scale /= std::sqrt(squares / dim + p.norm_epsilon);
  }
  for (uint32_t i = 0; i < dim; ++i) head[i] = static_cast<float>(head[i] * scale);
}

// Writes one row of K or V to its KV slot.
void Write(const KvPages& pages, void* to, int32_t slot, uint32_t head, const float* values,
           uint32_t dim) {
  const size_t offset = host::PageOffset(pages, slot, head, tensor::RowBytes(pages.type, dim));
  StorePageRow(pages.type, values, dim, static_cast<std::byte*>(to) + offset);
}

void RotateAndWriteToken(const RopeWriteKvParams& p, const host::TaskContext& context) {
  const KvPages& pages = p.pages;
  const size_t t = context.task;
  auto* const cos = reinterpret_cast<float*>(context.thread_scratch);
  float* const sin = cos + p.rotary_dims / 2;
  host::RopeAngles(p, p.positions[t], cos, sin);
  const float temperature = host::QueryTemperature(p, p.positions[t]);
  for (uint32_t h = 0; h < p.heads; ++h) {
    float* const q = p.q + (t * p.heads + h) * pages.head_dim;
    Rotate(q, p, cos, sin);
    Scale(q, p, temperature);
  }
  for (uint32_t h = 0; h < pages.kv_heads; ++h) {
    float* const k = p.k + (t * pages.kv_heads + h) * pages.head_dim;
    Rotate(k, p, cos, sin);
    Scale(k, p, 1.0f);
    if (p.slots[t] < 0) continue;
    Write(pages, pages.k, p.slots[t], h, k, pages.head_dim);
    if (pages.latent) continue;
    const float* const v = p.v + (t * pages.kv_heads + h) * pages.value_dim;
    Write(pages, pages.v, p.slots[t], h, v, pages.value_dim);
  }
}

}  // namespace

void EncodeOp(host::OpList& list, const RopeWriteKvParams& params) {
  list.ReserveScratch(0, params.rotary_dims * sizeof(float));
  list.Add("rope_write_kv", params.tokens, &RotateAndWriteToken, params);
}

}  // namespace tandem::kernels::reference
