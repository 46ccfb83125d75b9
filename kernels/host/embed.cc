// Embed: rows of a table, dequantised. Shared by all backends on the host.
#include <algorithm>
#include <cstdint>

#include "common/tensor/dequantize.h"
#include "kernels/host/ops.h"

namespace tandem::kernels::host {
namespace {

void EmbedToken(const EmbedParams& p, const TaskContext& context) {
  const Weight& table = p.table;
  float* const out = p.out + static_cast<size_t>(context.task) * table.col_count;
  const int64_t row = int64_t{p.ids[context.task]} - p.vocab_begin;
  if (row < 0 || row >= table.rows) {
    std::fill_n(out, table.col_count, 0.0f);
    return;
  }
  auto* const values = reinterpret_cast<float*>(context.thread_scratch);
  tensor::Dequantize(table.type,
                     static_cast<const std::byte*>(table.data) + row * table.row_stride_bytes,
                     values, table.cols);
  for (uint32_t i = 0; i < table.col_count; ++i) out[i] = p.scale * values[table.col_begin + i];
}

}  // namespace

void EncodeOp(OpList& list, const EmbedParams& params) {
  list.ReserveScratch(0, params.table.cols * sizeof(float));
  list.Add("embed", params.tokens, &EmbedToken, params);
}

}  // namespace tandem::kernels::host
