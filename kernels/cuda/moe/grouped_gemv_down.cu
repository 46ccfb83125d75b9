// Grouped products for few tokens, down: a block has kWarpRows rows of the output, its warps divide
// the choices of all tokens.
// Floor: reads the rows of every expert that a token chose, once.
#include "common/tensor/type.h"
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/moe/gemv_choices.h"
#include "kernels/cuda/moe/grouped_gemv.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kMaxWarps = 8;

// Grid: runs of rows.
template <tensor::Type kType, uint32_t kMost>
__global__ void __launch_bounds__(kMaxWarps* kWarp, 2)
    GroupedGemvDownKernel(const __grid_constant__ GroupedGemvArgs a) {
  FollowEarlierLaunches();
  const ExpertMatMulParams& p = a.p;
  const ExpertProjection& projection = p.projections[0];
  const SumTask task = {0, p.tokens, blockIdx.x * kWarpRows, kWarpRows, kWarpRows};
  SharedArena arena;
  const SharedArray<float> parts = arena.Take<float>(kMost * p.top_k * kWarpRows);
  const SharedArray<uint32_t> order = arena.Take<uint32_t>(kMost * p.top_k);
  OrderChoices(p, task, order);

  const uint32_t in_warp = threadIdx.x % kWarp / kRowLanes;
  for (uint32_t choice = threadIdx.x / kWarp; choice < task.Choices(p);
       choice += blockDim.x / kWarp) {
    const uint32_t expert = LocalExpert(p, p.ids[choice]);
    if (expert >= p.num_experts) continue;
    const auto choices = FindChoices<kMost>(p, choice);
    if (choices.at[0] != choice) continue;
    const uint32_t row = task.row + in_warp;
    const std::byte* const rows[1] = {ExpertRow(projection, expert, row)};
    ForEachProduct<kType>(
        a, rows, projection.weight.cols, choices, [&](uint32_t, uint32_t of, float sum) {
          if (threadIdx.x % kRowLanes != 0) return;
          parts[of * kWarpRows + in_warp] = sum + ExpertBias(projection, expert, row);
        });
  }
  __syncthreads();
  SumChoices(p, task, parts, order);
}

}  // namespace

void EncodeGroupedGemvDown(Stream& stream, GroupedGemvArgs args) {
  args.fours = InputsInFours(args.window, args.p.x, {args.p.x_stride});
  const Weight& weight = args.p.projections[0].weight;
  const uint32_t tokens = args.p.tokens == 1 ? 1 : kFewTokens;
  const uint32_t choices = tokens * args.p.top_k;
  const uint32_t threads = (choices < kMaxWarps ? choices : kMaxWarps) * kWarp;
  const size_t shared = SharedBytes<float>(choices * kWarpRows) + SharedBytes<uint32_t>(choices);
  DispatchType(weight.type, [&](auto type) {
    stream.LaunchEarly("grouped_gemv_down",
                       tokens == 1 ? &GroupedGemvDownKernel<type(), 1>
                                   : &GroupedGemvDownKernel<type(), kFewTokens>,
                       Blocks(weight.rows, kWarpRows), threads, shared, args);
  });
}

}  // namespace tandem::kernels::cuda
