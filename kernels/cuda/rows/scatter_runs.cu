// ScatterRuns: a block per run.
// Floor: 16 bytes per run are read; every value is read and written once, 8 bytes.
#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kThreads = 128;

__global__ void __launch_bounds__(kThreads) ScatterRunsKernel(const ScatterRunsParams p) {
  const ScatterRun run = p.runs[blockIdx.x];
  for (uint32_t i = threadIdx.x; i < run.count; i += kThreads) {
    p.out[run.to + i] = p.values[run.from + i];
  }
}

}  // namespace

void EncodeOp(Stream& stream, const ScatterRunsParams& params) {
  stream.Launch("scatter_runs", &ScatterRunsKernel, params.num_runs, kThreads, 0, params);
}

}  // namespace tandem::kernels::cuda
