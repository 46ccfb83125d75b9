// The parallel linear layers (Megatron-LM, https://arxiv.org/abs/1909.08053, section 3): a rank's
// part of the weight, and the collective that completes the result. Weights are already placed;
// layers own nothing. T = tokens.
#ifndef TANDEM_WORKER_LAYERS_LINEAR_H_
#define TANDEM_WORKER_LAYERS_LINEAR_H_

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "kernels/ops.h"
#include "worker/layers/context.h"

namespace tandem::worker {

// What an adapter adds to the outputs of a placed matrix: x A^T B^T (common/model/adapter.h). No
// rows: nothing.
struct LowRank {
  kernels::Weight a;  // (r, columns of this rank)
  kernels::Weight b;  // (rows of this rank, r)
};

// A placed matrix with its bias. `bias` is null if the model has none.
struct Linear {
  kernels::Weight weight;
  const float* bias = nullptr;
  std::span<const LowRank> adapters{};  // by number; empty: the model has none
};

// Output rows are split: a rank computes complete outputs for its part of the features. No
// collective.
class ColumnParallelLinear {
 public:
  ColumnParallelLinear() = default;
  explicit ColumnParallelLinear(Linear part) : parts_{part} {}

  // Several matrices as one, with one pass over x: gate and up, the same columns of both on a rank;
  // or Q, K and V, of whole heads, where a KV head that two ranks' query heads read stands on both.
  explicit ColumnParallelLinear(std::vector<Linear> parts) : parts_(std::move(parts)) {}

  // x (T, cols) -> y (T, rows), one per part; parts share x and may have different quantisation
  // types.
  kernels::MatMulParams Params(const float* x, uint32_t tokens,
                               std::initializer_list<float*> outputs) const;
  void Encode(LayerContext& context, const float* x, uint32_t tokens, float* y) const {
    const kernels::MatMulParams product = Params(x, tokens, {y});
    context.backend.Encode(product);
    EncodeAdapters(context, product);
  }
  // Adds what the step's adapters change in the outputs of `product`, which is Params', is encoded,
  // and still has its x.
  void EncodeAdapters(LayerContext& context, const kernels::MatMulParams& product) const;

 private:
  std::vector<Linear> parts_;
};

// The input dimension is split: every rank has a partial sum of all outputs, completed by an
// all-reduce.
class RowParallelLinear {
 public:
  RowParallelLinear() = default;
  // The bias, if any, is added only by rank 0.
  explicit RowParallelLinear(Linear part) : part_(part) {}

  // x (T, columns of this rank) -> y (T, rows), summed over ranks.
  void Encode(LayerContext& context, const float* x, uint32_t tokens, float* y) const;
  // The rank's part of the sum, for a caller that sums over ranks later.
  kernels::MatMulParams Params(const LayerContext& context, const float* x, uint32_t tokens,
                               float* y) const;
  // As of a column-parallel matrix; before the sum over ranks.
  void EncodeAdapters(LayerContext& context, const kernels::MatMulParams& product) const;

 private:
  Linear part_;
};

// y (T, width) summed over ranks.
void SumOverRanks(LayerContext& context, uint32_t tokens, uint32_t width, float* y);

}  // namespace tandem::worker

#endif  // TANDEM_WORKER_LAYERS_LINEAR_H_
