// PoolRows: a thread per column of a range, which adds its rows in order: the bits of the host's.
// Floor: every value of a range is read once, 4 bytes; a column is written once, 8 bytes.
#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kThreads = 128;

__global__ void __launch_bounds__(kThreads) PoolRowsKernel(const PoolRowsParams p) {
  const uint32_t column = blockIdx.y * kThreads + threadIdx.x;
  if (column >= p.dim) return;
  const RowRange range = p.ranges[blockIdx.x];
  double sum = 0;
  for (uint32_t row = range.begin; row < range.end; ++row) {
    sum += static_cast<double>(p.x[static_cast<size_t>(row) * p.dim + column]);
  }
  p.out[static_cast<size_t>(blockIdx.x) * p.dim + column] = sum;
}

}  // namespace

void EncodeOp(Stream& stream, const PoolRowsParams& params) {
  stream.Launch("pool_rows", &PoolRowsKernel, dim3(params.count, Blocks(params.dim, kThreads)),
                kThreads, 0, params);
}

}  // namespace tandem::kernels::cuda
