// RopeWriteKv, compiled once per instruction set. One task is one token.
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/page_rows.h"
#include "kernels/cpu/vec.h"
#include "kernels/host/pages.h"
#include "kernels/host/rope.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {
namespace {

// Pairs (i, i + pairs).
void RotateHalves(float* __restrict head, uint32_t pairs, const float* __restrict cos,
                  const float* __restrict sin) {
  uint32_t i = 0;
  for (; i + kLanes <= pairs; i += kLanes) {
    const Vec a = Load(head + i), b = Load(head + pairs + i), c = Load(cos + i), s = Load(sin + i);
    Store(head + i, a * c - b * s);
    Store(head + pairs + i, b * c + a * s);
  }
  for (; i < pairs; ++i) {
    const float a = head[i], b = head[pairs + i];
    head[i] = a * cos[i] - b * sin[i];
    head[pairs + i] = b * cos[i] + a * sin[i];
  }
}

// Pairs (2 i, 2 i + 1).
void RotateNeighbours(float* __restrict head, uint32_t pairs, const float* __restrict cos,
                      const float* __restrict sin) {
  for (uint32_t i = 0; i < pairs; ++i) {
    const float a = head[2 * i], b = head[2 * i + 1];
    head[2 * i] = a * cos[i] - b * sin[i];
    head[2 * i + 1] = b * cos[i] + a * sin[i];
  }
}

float SumSquares(const float* values, uint32_t count) {
  Vec sums = Zero();
  uint32_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Vec x = Load(values + i);
    sums = Fma(x, x, sums);
  }
  if (i < count) {
    const Vec x = LoadPartial(values + i, static_cast<int>(count - i));
    sums = Fma(x, x, sums);
  }
  return ReduceAdd(sums);
}

// Divides by the root mean square, if the heads are normed, and multiplies by `factor`.
void Scale(float* head, const RopeWriteKvParams& p, float factor) {
  const uint32_t dim = p.pages.head_dim;
  if (p.norm_epsilon > 0.0f) {
    const float mean = SumSquares(head, dim) / static_cast<float>(dim);
    factor /= __builtin_sqrtf(mean + p.norm_epsilon);
  }
  if (factor == 1.0f) return;
  const Vec by = Set1(factor);
  uint32_t i = 0;
  for (; i + kLanes <= dim; i += kLanes) Store(head + i, Load(head + i) * by);
  if (i == dim) return;
  const int n = static_cast<int>(dim - i);
  StorePartial(head + i, LoadPartial(head + i, n) * by, n);
}

// Writes one row of K to the columns of its KV slot, through `row`.
void WriteColumns(const KvPages& pages, int32_t slot, uint32_t head, const float* values,
                  unsigned char* row) {
  WithRows(pages.type, [=](auto rows) { decltype(rows)::Store(row, values, pages.head_dim); });
  auto* const k = static_cast<unsigned char*>(pages.k);
  host::ForKeyPieces(pages, slot, head, [=](size_t to, size_t from, size_t bytes) {
    if (bytes == 2) {
      __builtin_memcpy(k + to, row + from, 2);
    } else {
      __builtin_memcpy(k + to, row + from, 4);
    }
  });
}

// Writes one row of K or V to its KV slot.
void Write(const KvPages& pages, void* to, int32_t slot, uint32_t head, const float* values,
           uint32_t dim) {
  const size_t offset = host::PageOffset(pages, slot, head, tensor::RowBytes(pages.type, dim));
  WithRows(pages.type, [=](auto rows) {
    decltype(rows)::Store(static_cast<unsigned char*>(to) + offset, values, dim);
  });
}

}  // namespace

void RotateAndWriteToken(const RopeWriteKvParams& p, const host::TaskContext& context) {
  const KvPages& pages = p.pages;
  const size_t t = context.task;
  const uint32_t pairs = p.rotary_dims / 2;
  float* const cos = reinterpret_cast<float*>(context.thread_scratch);
  float* const sin = cos + pairs;
  host::RopeAngles(p, p.positions[t], cos, sin);
  const auto rotate = p.halves ? RotateHalves : RotateNeighbours;
  const float temperature = host::QueryTemperature(p, p.positions[t]);
  for (uint32_t h = 0; h < p.heads; ++h) {
    float* const q = p.q + (t * p.heads + h) * pages.head_dim;
    rotate(q + p.rotary_begin, pairs, cos, sin);
    Scale(q, p, temperature);
  }
  const int32_t slot = p.slots[t];
  for (uint32_t h = 0; h < pages.kv_heads; ++h) {
    float* const k = p.k + (t * pages.kv_heads + h) * pages.head_dim;
    rotate(k + p.rotary_begin, pairs, cos, sin);
    Scale(k, p, 1.0f);
    if (slot < 0) continue;
    if (pages.k_columns) {
      WriteColumns(pages, slot, h, k, reinterpret_cast<unsigned char*>(sin + pairs));
    } else {
      Write(pages, pages.k, slot, h, k, pages.head_dim);
    }
    if (pages.latent) continue;
    Write(pages, pages.v, slot, h, p.v + (t * pages.kv_heads + h) * pages.value_dim,
          pages.value_dim);
  }
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA
