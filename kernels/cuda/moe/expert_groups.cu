// A counting sort, one block per run. The order of choices within an expert depends on thread
// timing; no sum depends on it, as every choice has its own output or partial output.
// Floor: reads the ids, writes as many indices; a few microseconds of latency.
#include "kernels/cuda/moe/expert_groups.h"

#include "kernels/cuda/device/scan.h"
#include "kernels/cuda/moe/expert_choices.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kThreads = 1024;

struct GroupArgs {
  ExpertMatMulParams p;
  ChoiceGroups groups;
};

__global__ void __launch_bounds__(kThreads) GroupChoicesKernel(const GroupArgs a) {
  const ExpertMatMulParams& p = a.p;
  const ChoiceGroups& groups = a.groups;
  const uint32_t token = blockIdx.x * groups.run_tokens;
  const uint32_t first = token * p.top_k;
  const uint32_t choices = min(groups.run_tokens, p.tokens - token) * p.top_k;
  SharedArena arena;
  const SharedArray<uint64_t> room = arena.Take<uint64_t>(kBlockReduceRoom);
  const SharedArray<uint32_t> next = arena.Take<uint32_t>(p.num_experts);  // counts, then positions

  for (uint32_t e = threadIdx.x; e < p.num_experts; e += blockDim.x) next[e] = 0;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < choices; i += blockDim.x) {
    const uint32_t expert = LocalExpert(p, p.ids[first + i]);
    if (expert < p.num_experts) next.AtomicAdd(expert, 1u);
  }
  __syncthreads();

  // A thread handles a few consecutive experts: counts the choices and tiles before them.
  const uint32_t each = (p.num_experts + blockDim.x - 1) / blockDim.x;
  const uint32_t begin = min(threadIdx.x * each, p.num_experts);
  const uint32_t end = min(begin + each, p.num_experts);
  uint64_t mine = 0;  // choices in the high half, tiles in the low half
  for (uint32_t e = begin; e < end; ++e) {
    const uint32_t count = next[e];
    mine += static_cast<uint64_t>(count) << 32 | (count + groups.tile - 1) / groups.tile;
  }
  const Scan<uint64_t> scan = BlockScan(mine, room);
  auto place = static_cast<uint32_t>(scan.before >> 32);
  auto index = static_cast<uint32_t>(scan.before);
  ExpertTile* const tiles = groups.tiles + static_cast<size_t>(blockIdx.x) * groups.most_tiles;
  for (uint32_t e = begin; e < end; ++e) {
    const uint32_t count = next[e];
    next[e] = place;
    for (uint32_t i = 0; i < count; i += groups.tile) {
      tiles[index++] = {e, first + place + i, min(groups.tile, count - i)};
    }
    place += count;
  }
  for (uint32_t i = static_cast<uint32_t>(scan.total) + threadIdx.x; i < groups.most_tiles;
       i += blockDim.x) {
    tiles[i] = {0, 0, 0};
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < choices; i += blockDim.x) {
    const uint32_t expert = LocalExpert(p, p.ids[first + i]);
    if (expert < p.num_experts) groups.order[first + next.AtomicAdd(expert, 1u)] = first + i;
  }
}

}  // namespace

ChoiceGroups::ChoiceGroups(const ExpertMatMulParams& params, uint32_t tokens_of_run,
                           uint32_t choices_of_tile)
    : run_tokens(tokens_of_run), runs(Blocks(params.tokens, run_tokens)), tile(choices_of_tile) {
  const uint32_t choices = run_tokens * params.top_k;
  const uint32_t most = choices / tile + params.num_experts;
  most_tiles = most < choices ? most : choices;
}
size_t ChoiceGroups::TileBytes() const {
  return ScratchBytes(size_t{runs} * most_tiles * sizeof(ExpertTile));
}
size_t ChoiceGroups::OrderBytes(const ExpertMatMulParams& params) const {
  return ScratchBytes(size_t{params.tokens} * params.top_k * sizeof(uint32_t));
}

void EncodeChoiceGroups(Stream& stream, const ExpertMatMulParams& params,
                        const ChoiceGroups& groups) {
  const size_t shared =
      SharedBytes<uint64_t>(kBlockReduceRoom) + SharedBytes<uint32_t>(params.num_experts);
  stream.Launch("group_choices", &GroupChoicesKernel, groups.runs, kThreads, shared,
                {params, groups});
}

}  // namespace tandem::kernels::cuda
