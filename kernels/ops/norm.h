// Norms: RMSNorm and LayerNorm, fused with the residual addition.
#ifndef TANDEM_KERNELS_OPS_NORM_H_
#define TANDEM_KERNELS_OPS_NORM_H_

#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"

namespace tandem::kernels {

// If add: residual += add. Then out = residual / rms(residual) * weight. `out` may equal `residual`
// when add is null. Per-head norms use rows = T * heads, dim = head_dim. With a gate the result is
// multiplied by silu(gate). A row may be a part of a longer one, whose sum of squares is given;
// then add is null.
struct RmsNormParams {
  static constexpr std::string_view kName = "RmsNorm";

  float* residual;      // (rows, dim)
  const float* add;     // (rows, dim) or null
  const float* weight;  // (dim)
  float epsilon;
  uint32_t rows;
  uint32_t dim;
  float* out;                          // (rows, dim), rows out_stride apart
  uint32_t out_stride = 0;             // 0: dim
  const float* gate = nullptr;         // (rows, dim) or null
  const float* sum_squares = nullptr;  // (rows) or null
  uint32_t sum_dim = 0;                // values of the longer row

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    const Access residual = p.add == nullptr ? Access::kIn : Access::kInOut;
    visit("residual", p.residual, Dense(residual, p.rows, p.dim));
    visit("add", p.add, In(p.rows, p.dim).Optional());
    visit("weight", p.weight, In(p.dim));
    visit("gate", p.gate, In(p.rows, p.dim).Optional());
    visit("sum_squares", p.sum_squares, In(p.rows).Optional());
    visit("out", p.out,
          Strided(Access::kOut, p.rows, p.dim, p.out_stride == 0 ? p.dim : p.out_stride));
  }
};

// As RmsNorm, with the mean subtracted first: out = (residual - mean) / deviation * weight + bias.
struct LayerNormParams {
  static constexpr std::string_view kName = "LayerNorm";

  float* residual;      // (rows, dim)
  const float* add;     // (rows, dim) or null
  const float* weight;  // (dim)
  const float* bias;    // (dim) or null
  float epsilon;
  uint32_t rows;
  uint32_t dim;
  float* out;  // (rows, dim)

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    const Access residual = p.add == nullptr ? Access::kIn : Access::kInOut;
    visit("residual", p.residual, Dense(residual, p.rows, p.dim));
    visit("add", p.add, In(p.rows, p.dim).Optional());
    visit("weight", p.weight, In(p.dim));
    visit("bias", p.bias, In(p.dim).Optional());
    visit("out", p.out, Out(p.rows, p.dim));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_NORM_H_
