// The kernel that rounds rows to int8 groups, for rows in memory and for rows that are computed as
// they are read. Device code.
#ifndef TANDEM_KERNELS_CUDA_ROWS_QUANTIZE_ROWS_KERNEL_H_
#define TANDEM_KERNELS_CUDA_ROWS_QUANTIZE_ROWS_KERNEL_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/floats.h"
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/device/quantize_group.h"
#include "kernels/cuda/rows/quantize_rows.h"

namespace tandem::kernels::cuda {

inline constexpr uint32_t kQuantizeThreads = 128;

template <typename Rows>
struct QuantizeTask {
  Rows rows;
  ColumnRange columns;
  uint32_t groups;  // of a row
  Int8Group* out;   // (rows, groups)
};

// Block (x, y): groups from 16 y of row x. rows.Run<kWidth>(row, i) returns kWidth values from
// column i of the range on.
template <typename Rows, uint32_t kWidth>
__global__ void __launch_bounds__(kQuantizeThreads)
    QuantizeRowsKernel(const QuantizeTask<Rows> task) {
  FollowEarlierLaunches();
  const ColumnRange& columns = task.columns;
  const uint32_t group = (blockIdx.y * kQuantizeThreads + threadIdx.x) / kLanesPerGroup;
  // Counted from the range's first column: it wraps around before that.
  const uint32_t first =
      (columns.begin / 32 + group) * 32 + threadIdx.x % kLanesPerGroup * 4 - columns.begin;
  float values[4] = {};
#pragma unroll
  for (uint32_t i = 0; i < 4; i += kWidth) {
    if (first + i >= columns.count) continue;
    const Floats<kWidth> run = task.rows.template Run<kWidth>(blockIdx.x, first + i);
#pragma unroll
    for (uint32_t j = 0; j < kWidth; ++j) values[i + j] = run.at[j];
  }
  Int8Group* const to = task.out + static_cast<size_t>(blockIdx.x) * task.groups + group;
  QuantizeGroup(values, group < task.groups ? to : nullptr);
}

// `fours`: runs of four values are whole and aligned.
template <typename Rows>
void LaunchQuantizeRows(Stream& stream, const char* name, const Rows& rows, uint32_t count,
                        ColumnRange columns, bool fours, Int8Group* out) {
  const uint32_t groups = columns.Units(32);
  const dim3 grid(count, Blocks(uint64_t{groups} * kLanesPerGroup, kQuantizeThreads));
  stream.LaunchEarly(name, fours ? &QuantizeRowsKernel<Rows, 4> : &QuantizeRowsKernel<Rows, 1>,
                     grid, kQuantizeThreads, 0, {rows, columns, groups, out});
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ROWS_QUANTIZE_ROWS_KERNEL_H_
