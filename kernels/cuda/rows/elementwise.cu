// AddRows and SoftCap.
// Floor: AddRows reads x and y and writes y, 12 bytes per value; SoftCap reads and writes, 8.
#include "kernels/cuda/device/floats.h"
#include "kernels/cuda/device/gate.h"
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/rows/row_grid.h"

namespace tandem::kernels::cuda {
namespace {

struct AddTask {
  AddRowsParams params;
  RowGrid grid;
};

template <uint32_t kWidth>
__global__ void __launch_bounds__(RowGrid::kThreads) AddRowsKernel(const AddTask task) {
  FollowEarlierLaunches();
  const AddRowsParams& p = task.params;
  task.grid.Do<kWidth>([&](uint32_t row, uint32_t column) {
    const float factor = GateFactor(p.gate, row);
    const size_t at = static_cast<size_t>(row) * p.dim + column;
    Floats<kWidth> y = Load<kWidth>(p.y + at);
    const Floats<kWidth> x = Load<kWidth>(p.x + at);
#pragma unroll
    for (uint32_t i = 0; i < kWidth; ++i) y.at[i] = fmaf(factor, x.at[i], y.at[i]) * p.scale;
    Store(p.y + at, y);
  });
}

__device__ float Capped(float x, float cap) { return cap * tanhf(x / cap); }

template <uint32_t kWidth>
__global__ void __launch_bounds__(RowGrid::kThreads) SoftCapKernel(const SoftCapParams p) {
  FollowEarlierLaunches();
  const size_t at = (static_cast<size_t>(blockIdx.x) * RowGrid::kThreads + threadIdx.x) * kWidth;
  if (at + kWidth <= p.count) {
    Floats<kWidth> x = Load<kWidth>(p.x + at);
#pragma unroll
    for (uint32_t i = 0; i < kWidth; ++i) x.at[i] = Capped(x.at[i], p.cap);
    Store(p.x + at, x);
  } else {
    for (size_t i = at; i < p.count; ++i) p.x[i] = Capped(p.x[i], p.cap);
  }
}

}  // namespace

void EncodeOp(Stream& stream, const AddRowsParams& params) {
  const bool fours = InFours({params.dim}, {params.y, params.x});
  const RowGrid grid(params.rows, params.dim, fours ? 4 : 1);
  stream.LaunchEarly("add_rows", fours ? &AddRowsKernel<4> : &AddRowsKernel<1>, grid.grid(),
                     RowGrid::kThreads, 0, {params, grid});
}

void EncodeOp(Stream& stream, const SoftCapParams& params) {
  const bool fours = InFours({}, {params.x});
  stream.LaunchEarly("soft_cap", fours ? &SoftCapKernel<4> : &SoftCapKernel<1>,
                     Blocks(params.count, RowGrid::kThreads * (fours ? 4 : 1)), RowGrid::kThreads,
                     0, params);
}

}  // namespace tandem::kernels::cuda
