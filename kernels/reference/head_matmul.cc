#include <algorithm>

#include "kernels/reference/dot.h"
#include "kernels/reference/ops.h"

namespace tandem::kernels::reference {
namespace {

// Scratch: a row of the weight as floats, then sums in double of one output row (transposed).
void MultiplyHead(const HeadMatMulParams& p, const host::TaskContext& context) {
  const size_t head = context.task;
  const Weight& weight = p.weight;
  auto* const sums = reinterpret_cast<double*>(context.thread_scratch);
  auto* const row = reinterpret_cast<float*>(sums + weight.col_count);
  const auto load = [&](uint32_t j) {
    const auto first = static_cast<uint32_t>(head * p.rows_per_head + p.row_begin);
    LoadRow(weight, static_cast<const std::byte*>(weight.data), first + j, row);
    return row + weight.col_begin;
  };
  for (size_t t = 0; t < p.tokens; ++t) {
    const float* const x = p.x + t * p.x_token_stride + head * p.x_head_stride;
    float* const y = p.y + t * p.y_token_stride + head * p.y_head_stride;
    if (!p.transposed) {
      for (uint32_t j = 0; j < p.row_count; ++j) {
        y[j] = static_cast<float>(Dot(x, load(j), weight.col_count));
      }
      continue;
    }
    std::fill_n(sums, weight.col_count, 0.0);
    for (uint32_t j = 0; j < p.row_count; ++j) {
      const float* const values = load(j);
      for (uint32_t c = 0; c < weight.col_count; ++c) sums[c] += double{values[c]} * x[j];
    }
    for (uint32_t c = 0; c < weight.col_count; ++c) y[c] = static_cast<float>(sums[c]);
  }
}

}  // namespace

void EncodeOp(host::OpList& list, const HeadMatMulParams& params) {
  list.ReserveScratch(
      0, params.weight.col_count * sizeof(double) + params.weight.cols * sizeof(float));
  list.Add("head_matmul", params.tokens == 0 ? 0 : params.heads, &MultiplyHead, params);
}

}  // namespace tandem::kernels::reference
