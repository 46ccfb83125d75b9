// HeadMatMul: a product per head.
#ifndef TANDEM_KERNELS_OPS_HEAD_MATMUL_H_
#define TANDEM_KERNELS_OPS_HEAD_MATMUL_H_

#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"
#include "kernels/ops/weight.h"

namespace tandem::kernels {

// A product per head, for MLA's weight absorption. The weight has heads * rows_per_head rows; of
// each head's, rows [row_begin, row_begin + row_count) are used. Plain: y[t, h, j] = sum over c of
// W[h, row_begin + j, c] * x[t, h, c]. Transposed: y[t, h, c] = sum over j of W[h, row_begin + j,
// c] * x[t, h, j].
struct HeadMatMulParams {
  static constexpr std::string_view kName = "HeadMatMul";

  const float* x;
  uint32_t tokens;
  uint32_t heads;
  uint32_t x_token_stride;
  uint32_t x_head_stride;
  Weight weight;
  uint32_t rows_per_head;
  uint32_t row_begin;
  uint32_t row_count;
  bool transposed;
  float* y;
  uint32_t y_token_stride;
  uint32_t y_head_stride;

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    const uint32_t cols = p.weight.col_count;
    visit("x", p.x,
          Strided(Access::kIn, p.tokens, p.transposed ? p.row_count : cols, p.x_token_stride)
              .Times(p.heads, p.x_head_stride));
    visit("weight", p.weight);
    visit("y", p.y,
          Strided(Access::kOut, p.tokens, p.transposed ? cols : p.row_count, p.y_token_stride)
              .Times(p.heads, p.y_head_stride));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_HEAD_MATMUL_H_
