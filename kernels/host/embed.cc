// Embed: rows of a table, dequantised. Shared by all backends on the host.
#include <algorithm>
#include <cstdint>

#include "common/tensor/dequantize.h"
#include "kernels/host/ops.h"
#include "kernels/host/panels.h"
#include "kernels/host/window.h"

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
  const Window window = WindowOf(table);
  const auto* bytes = static_cast<const std::byte*>(table.data) + row * table.row_stride_bytes +
                      tensor::RowBytes(table.type, window.begin);
  if (table.panel_rows > 0) {
    std::byte* const copy = context.thread_scratch + table.cols * sizeof(float);
    ReadPanelRow(table, static_cast<uint32_t>(row), copy);
    bytes = copy;
  }
  tensor::Dequantize(table.type, bytes, values, window.cols());
  const float* const first = values + (table.col_begin - window.begin);
  for (uint32_t i = 0; i < table.col_count; ++i) out[i] = p.scale * first[i];
}

}  // namespace

void EncodeOp(OpList& list, const EmbedParams& params) {
  // The values, then the row's bytes, which are no more.
  list.ReserveScratch(0, 2 * params.table.cols * sizeof(float));
  list.Add("embed", params.tokens, &EmbedToken, params);
}

}  // namespace tandem::kernels::host
