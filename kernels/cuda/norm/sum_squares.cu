// Source: Zhang and Sennrich, "Root mean square layer normalization", 2019.
//
// One block per row.
// Floor: reads x once, 4 bytes per value.
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kThreads = 256;

__global__ void __launch_bounds__(kThreads) SumSquaresKernel(const SumSquaresParams p) {
  SharedArena arena;
  const SharedArray<float> room = arena.Take<float>(kBlockReduceRoom);
  const float* const x = p.x + static_cast<size_t>(blockIdx.x) * p.x_stride;
  float mine = 0;
  for (uint32_t i = threadIdx.x; i < p.dim; i += kThreads) mine += x[i] * x[i];
  const float sum = BlockSum(mine, room);
  if (threadIdx.x == 0) p.sums[blockIdx.x] = sum;
}

}  // namespace

void EncodeOp(Stream& stream, const SumSquaresParams& params) {
  stream.Launch("sum_squares", &SumSquaresKernel, params.rows, kThreads,
                SharedBytes<float>(kBlockReduceRoom), params);
}

}  // namespace tandem::kernels::cuda
