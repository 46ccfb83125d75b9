#include "worker/layers/linear.h"

#include "common/base/check.h"

namespace tandem::worker {
namespace {

kernels::Projection Project(const Linear& linear, const float* bias, float* y) {
  return {.weight = linear.weight, .bias = bias, .y = y, .y_stride = linear.weight.rows};
}

}  // namespace

kernels::MatMulParams ColumnParallelLinear::Params(const float* x, uint32_t tokens,
                                                   std::initializer_list<float*> outputs) const {
  TANDEM_CHECK(outputs.size() == parts_.size());
  kernels::MatMulParams params{};
  params.x = x;
  params.tokens = tokens;
  params.x_stride = parts_[0].weight.col_count;
  for (float* y : outputs) {
    const Linear& part = parts_[params.num_projections];
    params.projections[params.num_projections++] = Project(part, part.bias, y);
  }
  return params;
}

void RowParallelLinear::Encode(LayerContext& context, const float* x, uint32_t tokens,
                               float* y) const {
  context.backend.Encode(Params(context, x, tokens, y));
  SumOverRanks(context, tokens, part_.weight.rows, y);
}

kernels::MatMulParams RowParallelLinear::Params(const LayerContext& context, const float* x,
                                                uint32_t tokens, float* y) const {
  const bool adds_bias = context.comm == nullptr || context.comm->rank() == 0;
  kernels::MatMulParams params{};
  params.x = x;
  params.tokens = tokens;
  params.x_stride = part_.weight.col_count;
  params.num_projections = 1;
  params.projections[0] = Project(part_, adds_bias ? part_.bias : nullptr, y);
  return params;
}

void SumOverRanks(LayerContext& context, uint32_t tokens, uint32_t width, float* y) {
  if (context.ranks() > 1) context.comm->AllReduceSum(y, static_cast<size_t>(tokens) * width);
}

}  // namespace tandem::worker
