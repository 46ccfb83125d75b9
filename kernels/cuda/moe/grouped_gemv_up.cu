// Grouped products for few choices of an expert: a warp has kWarpRows of its rows.
// Floor: reads the rows of every expert that was chosen once per piece.
#include "common/tensor/type.h"
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/moe/gemv_choices.h"
#include "kernels/cuda/moe/grouped_gemv.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kWarps = 4;
constexpr uint32_t kRows = kWarps * kWarpRows;

template <uint32_t kTokens>
struct Work {
  uint32_t expert;
  ChoicesOfExpert<kTokens> choices;
};

// The work of blocks (., i, .); returns whether there is any.
template <uint32_t kTokens>
__device__ __forceinline__ bool FindWork(const GroupedGemvArgs& a, uint32_t i,
                                         Work<kTokens>& work) {
  const ExpertMatMulParams& p = a.p;
  if (a.pieces.list != nullptr) {
    const RowPiece piece = a.pieces.Piece(i);
    work = {piece.matrix, ChoicesOfPiece<kTokens>(a.pieces, piece)};
    return piece.count > 0;
  }
  if (i >= p.tokens * p.top_k) return false;
  work.expert = LocalExpert(p, p.ids[i]);
  if (work.expert >= p.num_experts) return false;
  work.choices = FindChoices<kTokens>(p, i);
  return work.choices.FirstIs(i);
}

// Grid: (runs of rows, pieces or choices, projections).
template <tensor::Type kType, uint32_t kTokens>
__global__ void __launch_bounds__(kWarps* kWarp, 6) GroupedGemvUpKernel(const GroupedGemvArgs a) {
  Work<kTokens> work;
  if (!FindWork(a, blockIdx.y, work)) return;  // the whole block; there are no barriers

  const ExpertProjection& projection = a.p.projections[blockIdx.z];
  const uint32_t row = blockIdx.x * kRows + threadIdx.x / kRowLanes;
  float sums[kTokens] = {};
  MultiplyChoices<kType>(a, ExpertRow(projection, work.expert, row), projection.weight.cols,
                         work.choices, sums);
  const float bias = ExpertBias(projection, work.expert, row);
#pragma unroll
  for (uint32_t t = 0; t < kTokens; ++t) {
    if (work.choices.at[t] < 0) continue;
    const float sum = SumOfRow(sums[t]) + bias;
    if (threadIdx.x % kRowLanes != 0 || row >= projection.weight.rows) continue;
    projection.y[static_cast<size_t>(work.choices.at[t]) * projection.weight.rows + row] = sum;
  }
}

}  // namespace

void EncodeGroupedGemvUp(Stream& stream, GroupedGemvArgs args) {
  args.fours = InputsInFours(args.window, args.p.x, {args.p.x_stride});
  const Weight& weight = args.p.projections[0].weight;
  const uint32_t items = args.pieces.most > 0 ? args.pieces.most : args.p.tokens * args.p.top_k;
  const dim3 grid(Blocks(weight.rows, kRows), items, args.p.num_projections);
  DispatchType(weight.type, [&](auto type) {
    stream.Launch("grouped_gemv_up",
                  args.p.tokens == 1 ? &GroupedGemvUpKernel<type(), 1>
                                     : &GroupedGemvUpKernel<type(), kFewTokens>,
                  grid, kWarps * kWarp, 0, args);
  });
}

}  // namespace tandem::kernels::cuda
