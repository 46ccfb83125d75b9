// ScatterRuns: int32 values that change a large array in a few places.
#ifndef TANDEM_KERNELS_OPS_SCATTER_RUNS_H_
#define TANDEM_KERNELS_OPS_SCATTER_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"

namespace tandem::kernels {

// Values [from, from + count) become elements [to, to + count).
struct ScatterRun {
  uint64_t to = 0;
  uint32_t from = 0;
  uint32_t count = 0;
};

// out[run.to + i] = values[run.from + i] for all i < run.count, for every run; all else stays.
// Example: runs (5, 0, 2) and (1, 2, 1) with values 7 8 9: out[5] = 7, out[6] = 8, out[1] = 9.
// REQUIRES: runs lie within `values` and `out`, and no two write the same element.
struct ScatterRunsParams {
  static constexpr std::string_view kName = "ScatterRuns";

  const ScatterRun* runs;  // (num_runs)
  uint32_t num_runs;
  const int32_t* values;  // (num_values)
  uint32_t num_values;
  int32_t* out;  // (out_size)
  size_t out_size;

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    visit("runs", p.runs, In(p.num_runs));
    visit("values", p.values, In(p.num_values));
    visit("out", p.out, InOut(1, p.out_size));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_SCATTER_RUNS_H_
