// Grouped products for few choices of an expert: a warp has kWarpRows of its rows.
// Floor: reads the rows of every expert that was chosen once per piece.
#include "common/tensor/type.h"
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/moe/gemv_choices.h"
#include "kernels/cuda/moe/grouped_gemv.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kWarps = 4;

// Rows of a lane: with several choices two share the inputs that it loads.
template <tensor::Type kType, uint32_t kMost>
constexpr uint32_t kRowsOfLane = kMost == 1 || IsPlain(kType) ? 1 : 2;

// Blocks of a multiprocessor: with several choices registers allow four. One choice needs fewer,
// and one token's blocks should run all at once.
constexpr int BlocksPerSm(uint32_t most) { return most == 1 ? 6 : 4; }

template <uint32_t kMost>
struct Work {
  uint32_t expert;
  ChoicesOfExpert<kMost> choices;
};

// The work of blocks (., i, .); returns whether there is any.
template <uint32_t kMost>
__device__ __forceinline__ bool FindWork(const GroupedGemvArgs& a, uint32_t i, Work<kMost>& work) {
  const ExpertMatMulParams& p = a.p;
  if (a.pieces.list != nullptr) {
    const RowPiece piece = a.pieces.Piece(i);
    if (piece.count == 0) return false;
    work = {piece.matrix, ChoicesOfPiece<kMost>(a.pieces, piece)};
    return true;
  }
  if (i >= p.tokens * p.top_k) return false;
  work.expert = LocalExpert(p, p.ids[i]);
  if (work.expert >= p.num_experts) return false;
  work.choices = FindChoices<kMost>(p, i);
  return work.choices.at[0] == i;
}

// Grid: (runs of rows, pieces or choices, projections).
template <tensor::Type kType, uint32_t kMost>
__global__ void __launch_bounds__(kWarps* kWarp, BlocksPerSm(kMost))
    GroupedGemvUpKernel(const __grid_constant__ GroupedGemvArgs a) {
  FollowEarlierLaunches();
  constexpr uint32_t kRows = kRowsOfLane<kType, kMost>, kStep = kWarps * kWarpRows;
  Work<kMost> work;
  if (!FindWork(a, blockIdx.y, work)) return;  // the whole block; there are no barriers

  const ExpertProjection& projection = a.p.projections[blockIdx.z];
  const uint32_t first = blockIdx.x * kStep * kRows + threadIdx.x / kRowLanes;
  const std::byte* rows[kRows];
#pragma unroll
  for (uint32_t r = 0; r < kRows; ++r) {
    rows[r] = ExpertRow(projection, work.expert, first + r * kStep);
  }
  ForEachProduct<kType>(a, rows, projection.weight.cols, work.choices,
                        [&](uint32_t r, uint32_t choice, float sum) {
                          const uint32_t row = first + r * kStep;
                          if (threadIdx.x % kRowLanes != 0 || row >= projection.weight.rows) return;
                          projection.y[static_cast<size_t>(choice) * projection.weight.rows + row] =
                              sum + ExpertBias(projection, work.expert, row);
                        });
}

}  // namespace

void EncodeGroupedGemvUp(Stream& stream, GroupedGemvArgs args) {
  args.fours = InputsInFours(args.window, args.p.x, {args.p.x_stride});
  const Weight& weight = args.p.projections[0].weight;
  const uint32_t items = args.pieces.most > 0 ? args.pieces.most : args.p.tokens * args.p.top_k;
  const uint32_t most = args.pieces.most > 0 ? args.pieces.size : args.p.tokens;
  DispatchType(weight.type, [&](auto type) {
    const auto launch = [&](auto most_choices) {
      constexpr uint32_t kMost = decltype(most_choices)::value;
      constexpr uint32_t kRows = kWarps * kWarpRows * kRowsOfLane<type(), kMost>;
      stream.LaunchEarly("grouped_gemv_up", &GroupedGemvUpKernel<type(), kMost>,
                         dim3(Blocks(weight.rows, kRows), items, args.p.num_projections),
                         kWarps * kWarp, 0, args);
    };
    if (most == 1) return launch(std::integral_constant<uint32_t, 1>());
    if (most <= 4) return launch(std::integral_constant<uint32_t, 4>());
    launch(std::integral_constant<uint32_t, kFewTokens>());
  });
}

}  // namespace tandem::kernels::cuda
