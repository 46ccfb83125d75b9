#include "worker/layers/linear.h"

#include "common/base/check.h"

namespace tandem::worker {
namespace {

kernels::Projection Project(const Linear& linear, const float* bias, float* y) {
  return {.weight = linear.weight, .bias = bias, .y = y, .y_stride = linear.weight.rows};
}

// y = x W^T (+ bias) of one matrix.
kernels::MatMulParams Product(const float* x, uint32_t tokens,
                              const kernels::Projection& projection) {
  kernels::MatMulParams params{};
  params.x = x;
  params.tokens = tokens;
  params.x_stride = projection.weight.col_count;
  params.num_projections = 1;
  params.projections[0] = projection;
  return params;
}

// product's outputs of the run's tokens += x A^T B^T.
void AddLowRank(LayerContext& context, const AdapterRun& run, const LowRank& change,
                const kernels::MatMulParams& product, const kernels::Projection& changed) {
  TANDEM_CHECK(product.x_stride == change.a.col_count && changed.y_stride == change.b.rows);
  const size_t mark = context.arena.used();
  float* const inner = context.arena.TakeActivations(size_t{run.tokens} * change.a.rows);
  float* const outer = context.arena.TakeActivations(size_t{run.tokens} * change.b.rows);
  const size_t first = run.first_token;
  context.backend.Encode(Product(product.x + first * product.x_stride, run.tokens,
                                 Project({.weight = change.a}, nullptr, inner)));
  context.backend.Encode(kernels::MatMulAddParams{
      .product = Product(inner, run.tokens, Project({.weight = change.b}, nullptr, outer)),
      .add = {.y = changed.y + first * changed.y_stride,
              .x = outer,
              .gate = nullptr,
              .rows = run.tokens,
              .dim = change.b.rows}});
  context.arena.Rewind(mark);
}

// What the step's adapters change in the outputs of one matrix.
void AddLowRanks(LayerContext& context, const Linear& linear, const kernels::MatMulParams& product,
                 const kernels::Projection& changed) {
  if (linear.adapters.empty()) return;
  for (const AdapterRun& run : context.adapter_runs) {
    TANDEM_CHECK(run.adapter < linear.adapters.size());
    const LowRank& change = linear.adapters[run.adapter];
    if (change.a.rows > 0) AddLowRank(context, run, change, product, changed);
  }
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

void ColumnParallelLinear::EncodeAdapters(LayerContext& context,
                                          const kernels::MatMulParams& product) const {
  for (size_t i = 0; i < parts_.size(); ++i) {
    AddLowRanks(context, parts_[i], product, product.projections[i]);
  }
}

void RowParallelLinear::Encode(LayerContext& context, const float* x, uint32_t tokens,
                               float* y) const {
  const kernels::MatMulParams product = Params(context, x, tokens, y);
  context.backend.Encode(product);
  EncodeAdapters(context, product);
  SumOverRanks(context, tokens, part_.weight.rows, y);
}

kernels::MatMulParams RowParallelLinear::Params(const LayerContext& context, const float* x,
                                                uint32_t tokens, float* y) const {
  const bool adds_bias = context.comm == nullptr || context.comm->rank() == 0;
  return Product(x, tokens, Project(part_, adds_bias ? part_.bias : nullptr, y));
}

void RowParallelLinear::EncodeAdapters(LayerContext& context,
                                       const kernels::MatMulParams& product) const {
  AddLowRanks(context, part_, product, product.projections[0]);
}

void SumOverRanks(LayerContext& context, uint32_t tokens, uint32_t width, float* y) {
  if (context.ranks() > 1) context.comm->AllReduceSum(y, static_cast<size_t>(tokens) * width);
}

}  // namespace tandem::worker
