// PoolRows: a task per range and run of columns. Shared by all backends on the host.
#include <algorithm>

#include "kernels/host/ops.h"

namespace tandem::kernels::host {
namespace {

constexpr uint32_t kColumns = 512;  // of a task

uint32_t TasksPerRange(const PoolRowsParams& p) { return (p.dim + kColumns - 1) / kColumns; }

void PoolColumns(const PoolRowsParams& p, const TaskContext& context) {
  const uint32_t range = context.task / TasksPerRange(p);
  const uint32_t begin = context.task % TasksPerRange(p) * kColumns;
  const uint32_t end = std::min(begin + kColumns, p.dim);
  double* const out = p.out + size_t{range} * p.dim;
  std::fill(out + begin, out + end, 0.0);
  for (uint32_t row = p.ranges[range].begin; row < p.ranges[range].end; ++row) {
    const float* const x = p.x + size_t{row} * p.dim;
    for (uint32_t column = begin; column < end; ++column) out[column] += double{x[column]};
  }
}

}  // namespace

void EncodeOp(OpList& list, const PoolRowsParams& params) {
  list.Add("pool_rows", params.count * TasksPerRange(params), &PoolColumns, params);
}

}  // namespace tandem::kernels::host
