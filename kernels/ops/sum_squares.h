// SumSquares: the sum that an RMS norm divides by, of rows that are parts of longer ones.
#ifndef TANDEM_KERNELS_OPS_SUM_SQUARES_H_
#define TANDEM_KERNELS_OPS_SUM_SQUARES_H_

#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"

namespace tandem::kernels {

// sums[r] = the sum over i of x[r][i]^2.
struct SumSquaresParams {
  static constexpr std::string_view kName = "SumSquares";

  const float* x;  // (rows, dim), rows x_stride apart
  uint32_t x_stride;
  uint32_t rows;
  uint32_t dim;  // may be 0
  float* sums;   // (rows)

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    visit("x", p.x, Strided(Access::kIn, p.rows, p.dim, p.x_stride));
    visit("sums", p.sums, Out(p.rows));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_SUM_SQUARES_H_
