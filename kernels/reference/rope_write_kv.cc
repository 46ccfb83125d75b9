// Source: Su et al., "RoFormer: enhanced transformer with rotary position embedding", 2021.
#include <cmath>
#include <cstring>

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

// Writes one row of K to its KV slot, through `row` if K lies in columns.
void WriteK(const KvPages& pages, int32_t slot, uint32_t head, const float* values,
            std::byte* row) {
  auto* const k = static_cast<std::byte*>(pages.k);
  const size_t row_bytes = tensor::RowBytes(pages.type, pages.head_dim);
  if (!pages.k_columns) {
    row = k + host::PageOffset(pages, slot, head, row_bytes);
    return StorePageRow(pages.type, values, pages.head_dim, row);
  }
  StorePageRow(pages.type, values, pages.head_dim, row);
  host::ForKeyPieces(pages, slot, head, [=](size_t to, size_t from, size_t bytes) {
    std::memcpy(k + to, row + from, bytes);
  });
}

void WriteV(const KvPages& pages, int32_t slot, uint32_t head, const float* values) {
  const size_t row_bytes = tensor::RowBytes(pages.type, pages.value_dim);
  StorePageRow(pages.type, values, pages.value_dim,
               static_cast<std::byte*>(pages.v) + host::PageOffset(pages, slot, head, row_bytes));
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
    WriteK(pages, p.slots[t], h, k, reinterpret_cast<std::byte*>(cos + p.rotary_dims));
    if (pages.latent) continue;
    WriteV(pages, p.slots[t], h, p.v + (t * pages.kv_heads + h) * pages.value_dim);
  }
}

}  // namespace

void EncodeOp(host::OpList& list, const RopeWriteKvParams& params) {
  list.ReserveScratch(0, (params.rotary_dims + params.pages.head_dim) * sizeof(float));
  list.Add("rope_write_kv", params.tokens, &RotateAndWriteToken, params);
}

}  // namespace tandem::kernels::reference
