// Grouped products for few tokens, up: a warp has kWarpRows rows of an expert at a time.
// Floor: reads the rows of every expert that a token of the run chose, once.
#include "common/tensor/type.h"
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/moe/grouped_gemv.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kWarps = 4;
constexpr uint32_t kRows = kWarps * kWarpRows;

// Grid: (runs of rows, choices of a run of tokens, projections of every run).
template <tensor::Type kType, uint32_t kTokens>
__global__ void __launch_bounds__(kWarps* kWarp, 6) GroupedGemvUpKernel(const GroupedGemvArgs a) {
  const ExpertMatMulParams& p = a.p;
  const uint32_t token = blockIdx.z / p.num_projections * kTokens;
  const uint32_t choice = token * p.top_k + blockIdx.y;
  // These returns end a whole block; there are no barriers.
  if (choice >= p.tokens * p.top_k) return;
  const uint32_t expert = LocalExpert(p, p.ids[choice]);
  if (expert >= p.num_experts) return;
  const auto choices = FindChoices<kTokens>(p, token, choice);
  if (!choices.FirstIs(choice)) return;

  const ExpertProjection& projection = p.projections[blockIdx.z % p.num_projections];
  const uint32_t row = blockIdx.x * kRows + threadIdx.x / kRowLanes;
  float sums[kTokens] = {};
  MultiplyChoices<kType>(a, ExpertRow(projection, expert, row), projection.weight.cols, choices,
                         sums);
  const float bias = ExpertBias(projection, expert, row);
#pragma unroll
  for (uint32_t t = 0; t < kTokens; ++t) {
    if (choices.of_token[t] < 0) continue;
    const float sum = SumOfRow(sums[t]) + bias;
    if (threadIdx.x % kRowLanes != 0 || row >= projection.weight.rows) continue;
    projection.y[static_cast<size_t>(choices.of_token[t]) * projection.weight.rows + row] = sum;
  }
}

}  // namespace

GroupedGemvArgs PrepareGroupedGemv(Stream& stream, const ExpertMatMulParams& params) {
  const Weight& weight = params.projections[0].weight;
  GroupedGemvArgs args = {params, ColumnWindow(weight), false, nullptr};
  args.fours = InputsInFours(args.window, params.x, {params.x_stride});
  if (IsPlain(weight.type)) return args;
  const uint32_t rows = params.weights != nullptr ? params.tokens * params.top_k : params.tokens;
  auto* const groups = reinterpret_cast<Int8Group*>(
      stream.Scratch(size_t{rows} * (args.window.padded / 32) * sizeof(Int8Group)));
  EncodeQuantizeRows(stream,
                     {.x = params.x,
                      .rows = rows,
                      .x_stride = params.x_stride,
                      .columns = {.begin = weight.col_begin, .count = weight.col_count}},
                     groups);
  args.groups = groups;
  return args;
}

void EncodeGroupedGemvUp(Stream& stream, const ExpertMatMulParams& params) {
  const GroupedGemvArgs args = PrepareGroupedGemv(stream, params);
  const Weight& weight = params.projections[0].weight;
  const uint32_t rows = Blocks(weight.rows, kRows);
  DispatchType(weight.type, [&](auto type) {
    if (params.tokens == 1) {
      stream.Launch("grouped_gemv_up", &GroupedGemvUpKernel<type(), 1>,
                    dim3(rows, params.top_k, params.num_projections), kWarps * kWarp, 0, args);
    } else {
      stream.Launch(
          "grouped_gemv_up", &GroupedGemvUpKernel<type(), kFewTokens>,
          dim3(rows, kFewTokens * params.top_k, params.num_projections * GroupedGemvRuns(params)),
          kWarps * kWarp, 0, args);
    }
  });
}

}  // namespace tandem::kernels::cuda
