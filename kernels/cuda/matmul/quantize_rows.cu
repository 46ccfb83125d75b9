// Floor: 4 bytes read per value, 1.5 written.
#include "kernels/cuda/matmul/quantize_rows.h"

#include "kernels/cuda/device/floats.h"
#include "kernels/cuda/device/quantize_group.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kThreads = 128;

struct QuantizeTask {
  RowsOfX rows;
  uint32_t units;
  Int8Rows groups;
};

// Block (x, y): groups from 16 y of row x. A thread reads runs of kWidth values.
template <uint32_t kWidth>
__global__ void __launch_bounds__(kThreads) QuantizeRowsKernel(const QuantizeTask task) {
  const ColumnRange& columns = task.rows.columns;
  const uint32_t unit = (blockIdx.y * kThreads + threadIdx.x) / kLanesPerGroup;
  // Counted from the range's first column: it wraps around before that.
  const uint32_t first =
      (columns.begin / 32 + unit) * 32 + threadIdx.x % kLanesPerGroup * 4 - columns.begin;
  const float* const row = task.rows.x + static_cast<size_t>(blockIdx.x) * task.rows.x_stride;
  float values[4] = {};
#pragma unroll
  for (uint32_t i = 0; i < 4; i += kWidth) {
    if (first + i >= columns.count) continue;
    const Floats<kWidth> run = Load<kWidth>(row + (first + i));
#pragma unroll
    for (uint32_t j = 0; j < kWidth; ++j) values[i + j] = run.at[j];
  }
  QuantizeGroup(values, unit < task.units ? task.groups.Group(blockIdx.x, unit) : nullptr);
}

}  // namespace

void EncodeQuantizeRows(Stream& stream, const RowsOfX& rows, GroupStrides strides, Int8Group* out) {
  const uint32_t units = rows.columns.Units(32);
  const dim3 grid(rows.rows, Blocks(uint64_t{units} * kLanesPerGroup, kThreads));
  const bool fours = InFours({rows.x_stride, rows.columns.begin, rows.columns.count}, {rows.x});
  stream.Launch("quantize_rows", fours ? &QuantizeRowsKernel<4> : &QuantizeRowsKernel<1>, grid,
                kThreads, 0, {rows, units, {out, strides}});
}

}  // namespace tandem::kernels::cuda
