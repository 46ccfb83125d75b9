// Ops on whole rows: AddRows, CopyRows, GatherRows.
#ifndef TANDEM_KERNELS_OPS_ROWS_H_
#define TANDEM_KERNELS_OPS_ROWS_H_

#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"

namespace tandem::kernels {

// y[r] = (y[r] + x[r]) * scale, x[r] times sigmoid(gate[r]) if gate is given.
struct AddRowsParams {
  static constexpr std::string_view kName = "AddRows";

  float* y;           // (rows, dim)
  const float* x;     // (rows, dim)
  const float* gate;  // (rows) or null
  uint32_t rows;
  uint32_t dim;
  float scale = 1.0f;

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    visit("y", p.y, InOut(p.rows, p.dim));
    visit("x", p.x, In(p.rows, p.dim));
    visit("gate", p.gate, In(p.rows).Optional());
  }
};

// Copies rows of `dim` values between arrays of different strides.
struct CopyRowsParams {
  static constexpr std::string_view kName = "CopyRows";

  const float* x;
  uint32_t x_stride;
  uint32_t rows;
  uint32_t dim;
  float* y;
  uint32_t y_stride;

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    visit("x", p.x, Strided(Access::kIn, p.rows, p.dim, p.x_stride));
    visit("y", p.y, Strided(Access::kOut, p.rows, p.dim, p.y_stride));
  }
};

// out[i] = src[rows[i]].
struct GatherRowsParams {
  static constexpr std::string_view kName = "GatherRows";

  const float* src;     // (any, dim)
  const int32_t* rows;  // (count)
  uint32_t count;
  uint32_t dim;
  float* out;  // (count, dim)

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    visit("src", p.src, In(0, p.dim));
    visit("rows", p.rows, In(p.count));
    visit("out", p.out, Out(p.count, p.dim));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_ROWS_H_
