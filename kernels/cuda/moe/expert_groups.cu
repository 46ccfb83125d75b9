// A counting sort in one block. The order of choices within an expert depends on thread timing; no
// sum depends on it, as every choice has its own output or partial output.
// Floor: reads the ids, writes as many indices; a few microseconds of latency.
#include "kernels/cuda/moe/expert_groups.h"

#include <algorithm>

#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/device/scan.h"
#include "kernels/cuda/moe/expert_choices.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kThreads = 1024;

struct GroupArgs {
  ExpertMatMulParams p;
  ChoiceGroups groups;
};

// Pieces of an expert with `count` choices.
__device__ uint32_t AllPieces(const ChoiceGroups& groups, uint32_t count) {
  return (count + groups.size - 1) / groups.size;
}
__device__ uint32_t LargePieces(const ChoiceGroups& groups, uint32_t count) {
  const uint32_t whole = groups.size > groups.few ? count / groups.size : 0;
  return whole + (count % groups.size > groups.few ? 1 : 0);
}

// Writes the pieces of all experts, and to `counts`, in place of an expert's number of choices, the
// place of its first. A thread handles a few consecutive experts. All threads.
__device__ void PlacePieces(const ChoiceGroups& groups, SharedArray<uint32_t> counts,
                            uint32_t experts, SharedArray<uint32_t> room) {
  const uint32_t each = (experts + blockDim.x - 1) / blockDim.x;
  const uint32_t begin = min(threadIdx.x * each, experts), end = min(begin + each, experts);
  const auto scan = [&](auto of_expert) {
    uint32_t sum = 0;
    for (uint32_t e = begin; e < end; ++e) sum += of_expert(counts[e]);
    return BlockScan(sum, room);
  };
  const auto places = scan([](uint32_t count) { return count; });
  const auto all = scan([&](uint32_t count) { return AllPieces(groups, count); });
  const auto larges = scan([&](uint32_t count) { return LargePieces(groups, count); });

  uint32_t place = places.before, large = larges.before, small = all.before - larges.before;
  for (uint32_t e = begin; e < end; ++e) {
    const uint32_t count = counts[e];
    counts[e] = place;
    for (uint32_t i = 0; i < count; i += groups.size) {
      const RowPiece piece = {e, place + i, min(groups.size, count - i)};
      if (piece.count > groups.few) {
        groups.large[large++] = piece;
      } else {
        groups.small[small++] = piece;
      }
    }
    place += count;
  }
  const uint32_t smalls = all.total - larges.total;
  for (uint32_t i = smalls + threadIdx.x; i < groups.most_small; i += blockDim.x) {
    groups.small[i] = {0, 0, 0};
  }
  for (uint32_t i = larges.total + threadIdx.x; i < groups.most_large; i += blockDim.x) {
    groups.large[i] = {0, 0, 0};
  }
}

__global__ void __launch_bounds__(kThreads) GroupChoicesKernel(const GroupArgs a) {
  FollowEarlierLaunches();
  const ExpertMatMulParams& p = a.p;
  const uint32_t choices = a.groups.choices;
  SharedArena arena;
  const SharedArray<uint32_t> room = arena.Take<uint32_t>(kBlockReduceRoom);
  const SharedArray<uint32_t> next = arena.Take<uint32_t>(p.num_experts);  // counts, then places

  for (uint32_t e = threadIdx.x; e < p.num_experts; e += blockDim.x) next[e] = 0;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < choices; i += blockDim.x) {
    const uint32_t expert = LocalExpert(p, p.ids[i]);
    if (expert < p.num_experts) next.AtomicAdd(expert, 1u);
  }
  __syncthreads();
  PlacePieces(a.groups, next, p.num_experts, room);
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < choices; i += blockDim.x) {
    const uint32_t expert = LocalExpert(p, p.ids[i]);
    if (expert < p.num_experts) a.groups.order[next.AtomicAdd(expert, 1u)] = i;
  }
}

}  // namespace

ChoiceGroups::ChoiceGroups(const ExpertMatMulParams& params, uint32_t size_of_piece,
                           uint32_t size_of_small)
    : choices(params.tokens * params.top_k),
      choices_per_x(params.weights != nullptr ? 1 : params.top_k),
      size(size_of_piece),
      few(size_of_small),
      experts(params.num_experts) {
  // All pieces of an expert but the last are whole.
  const uint32_t most = std::min(choices, choices / size + params.num_experts);
  most_small = few >= size ? most : few == 0 ? 0 : std::min(choices, params.num_experts);
  most_large = few >= size ? 0 : std::min(choices / (few + 1), most);
}

size_t ChoiceGroups::MostOfList() const {
  return std::min(choices, choices / kSmallestPiece + experts);
}

size_t ChoiceGroups::ScratchSize() const {
  return 2 * ScratchBytes(MostOfList() * sizeof(RowPiece)) +
         ScratchBytes(choices * sizeof(uint32_t));
}

void ChoiceGroups::SetScratch(std::byte* scratch) {
  small = reinterpret_cast<RowPiece*>(scratch);
  scratch += ScratchBytes(MostOfList() * sizeof(RowPiece));
  large = reinterpret_cast<RowPiece*>(scratch);
  scratch += ScratchBytes(MostOfList() * sizeof(RowPiece));
  order = reinterpret_cast<uint32_t*>(scratch);
}

void EncodeChoiceGroups(Stream& stream, const ExpertMatMulParams& params,
                        const ChoiceGroups& groups) {
  const size_t shared =
      SharedBytes<uint32_t>(kBlockReduceRoom) + SharedBytes<uint32_t>(params.num_experts);
  stream.LaunchEarly("group_choices", &GroupChoicesKernel, 1, kThreads, shared, {params, groups});
}

}  // namespace tandem::kernels::cuda
