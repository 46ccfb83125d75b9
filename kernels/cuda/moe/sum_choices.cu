// Floor: reads 4 bytes per choice and value of y, most of them from the L2 cache, and writes 4 per
// value.
#include "kernels/cuda/moe/sum_choices.h"

#include <cstddef>

#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/moe/expert_choices.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kThreads = 256;

struct SumArgs {
  ExpertMatMulParams p;
  SliceOfProducts slice;
};

// Grid: (tokens, runs of kThreads rows).
__global__ void __launch_bounds__(kThreads) SumChoicesKernel(const SumArgs a) {
  FollowEarlierLaunches();
  const uint32_t first = blockIdx.y * kThreads;
  const SumTask task = {blockIdx.x, 1, a.slice.row + first, min(kThreads, a.slice.rows - first),
                        a.slice.rows};
  SharedArena arena;
  const SharedArray<uint32_t> order = arena.Take<uint32_t>(a.p.top_k);
  OrderChoices(a.p, task, order);
  __syncthreads();
  const size_t choice = task.FirstChoice(a.p);
  SumChoices(a.p, task, a.slice.products + choice * a.slice.rows + first, order);
}

}  // namespace

void EncodeSumChoices(Stream& stream, const ExpertMatMulParams& params,
                      const SliceOfProducts& slice) {
  stream.LaunchEarly("sum_choices", &SumChoicesKernel,
                     dim3(params.tokens, Blocks(slice.rows, kThreads)), kThreads,
                     SharedBytes<uint32_t>(params.top_k), {params, slice});
}

}  // namespace tandem::kernels::cuda
