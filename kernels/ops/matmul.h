// MatMul: y = x W^T (+ bias).
#ifndef TANDEM_KERNELS_OPS_MATMUL_H_
#define TANDEM_KERNELS_OPS_MATMUL_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"
#include "kernels/ops/weight.h"

namespace tandem::kernels {

// y = x W^T (+ bias).
struct Projection {
  Weight weight;      // (n, cols)
  const float* bias;  // (n) or null
  float* y;           // (T, n), rows y_stride apart
  uint32_t y_stride;
};

inline constexpr uint32_t kMaxProjections = 3;

// Up to three projections of one input: QKV, or gate and up, as merged column-parallel matrices
// whose parts may have different types. All weights have the same cols, col_begin and col_count. On
// the CPU a row's result does not depend on other rows; on CUDA this holds up to 8 tokens, with
// block-quantised weights up to 256, and for larger batches only up to rounding.
struct MatMulParams {
  static constexpr std::string_view kName = "MatMul";

  const float* x;  // (T, col_count), rows x_stride apart
  uint32_t tokens;
  uint32_t x_stride;
  uint32_t num_projections;
  std::array<Projection, kMaxProjections> projections;

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    visit("x", p.x, Strided(Access::kIn, p.tokens, p.projections[0].weight.col_count, p.x_stride));
    for (uint32_t i = 0; i < p.num_projections; ++i) {
      auto& projection = p.projections[i];
      const uint32_t rows = projection.weight.rows;
      visit("weight", projection.weight);
      visit("bias", projection.bias, In(rows).Optional());
      visit("y", projection.y, Strided(Access::kOut, p.tokens, rows, projection.y_stride));
    }
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_MATMUL_H_
