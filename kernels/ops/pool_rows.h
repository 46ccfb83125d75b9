// PoolRows: sums of consecutive rows.
#ifndef TANDEM_KERNELS_OPS_POOL_ROWS_H_
#define TANDEM_KERNELS_OPS_POOL_ROWS_H_

#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"

namespace tandem::kernels {

// Rows [begin, end).
struct RowRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// out[i] = the sum of x[r] over all r of ranges[i], in doubles and in the order of the rows. Ranges
// that are parts of a longer one may be added up afterwards: a double has 29 bits more than a
// float, so that the sum, rounded to a float, hardly ever depends on how its rows were divided.
struct PoolRowsParams {
  static constexpr std::string_view kName = "PoolRows";

  const float* x;          // (any, dim)
  const RowRange* ranges;  // (count), none empty
  uint32_t count;
  uint32_t dim;
  double* out;  // (count, dim)

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    visit("x", p.x, In(0, p.dim));
    visit("ranges", p.ranges, In(p.count));
    visit("out", p.out, Out(p.count, p.dim));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_POOL_ROWS_H_
