// A gated delta net (Yang et al., 2024, arXiv:2412.06464) in place of attention, with a short
// convolution of queries, keys and values, and a gate on the output.
#include "common/model/state_bytes.h"
#include "worker/layers/linear.h"
#include "worker/model/attention.h"

namespace tandem::worker {
namespace {

using model::Role;

static_assert(model::DeltaNetSpec::kMaxConvTaps <= kernels::kMaxConvTaps);

class GatedDeltaNet final : public AttentionBlock {
 public:
  explicit GatedDeltaNet(const AttentionParts& parts)
      : AttentionBlock(parts),
        shape_(model::StateShapeOf(parts.spec, parts.plan)),
        qkv_({Matrix(Role::kDeltaQ), Matrix(Role::kDeltaK), Matrix(Role::kDeltaV)}),
        gates_({Matrix(Role::kDeltaGate), Matrix(Role::kDeltaDecay), Matrix(Role::kDeltaWrite)}),
        norm_{.weight = Vector(Role::kDeltaNorm),
              .epsilon = parts.spec.norm_epsilon,
              .dim = parts.spec.delta_net->head_dim},
        output_(Matrix(Role::kDeltaOut)) {}

  void Encode(LayerContext& context, const Batch& batch, const LayerCache& cache,
              const NormedRows& x, float* out) const override {
    const size_t mark = context.arena.used();
    const auto rows = [&](uint32_t width) {
      return context.arena.TakeActivations(static_cast<size_t>(batch.tokens) * width);
    };
    const uint32_t inner = shape_.value_heads * norm_.dim;
    float* qkv = rows(shape_.channels);
    float* convolved = rows(shape_.channels);
    float* gate = rows(inner);
    float* decay = rows(shape_.value_heads);
    float* write = rows(shape_.value_heads);
    float* mixed = rows(inner);
    const float* normed = x.Encode(context);
    EncodeQkv(context, batch, normed, qkv);
    context.backend.Encode(gates_.Params(normed, batch.tokens, {gate, decay, write}));
    EncodeConv(context, batch, cache.states, qkv, convolved);
    EncodeRule(context, batch, cache.states, {convolved, decay, write}, mixed);
    context.backend.Encode(kernels::RmsNormParams{.residual = mixed,
                                                  .add = nullptr,
                                                  .weight = norm_.weight,
                                                  .epsilon = norm_.epsilon,
                                                  .rows = batch.tokens * shape_.value_heads,
                                                  .dim = norm_.dim,
                                                  .out = mixed,
                                                  .gate = gate});
    output_.Encode(context, mixed, batch.tokens, out);
    context.arena.Rewind(mark);
  }

 private:
  struct RuleInputs {
    const float* qkv;
    const float* decay;
    const float* write;
  };

  Linear Matrix(Role role) const { return {parts_.weights.Matrix(role, parts_.layer), nullptr}; }
  const float* Vector(Role role) const { return parts_.weights.Vector(role, parts_.layer); }

  static kernels::RecurrentBatch Sequences(const Batch& batch) {
    return {.tokens = batch.tokens,
            .num_seqs = batch.num_seqs,
            .query_offsets = batch.query_offsets,
            .context_lens = batch.context_lens,
            .slots = batch.table_rows,
            .load_slots = batch.states.load_slots,
            .save_slots = batch.states.save_slots,
            .save_after = batch.states.save_after,
            .num_slots = batch.states.num_slots};
  }

  // Rows of all q, then all k, then all v.
  void EncodeQkv(LayerContext& context, const Batch& batch, const float* x, float* qkv) const {
    const uint32_t keys = shape_.key_heads * norm_.dim;
    kernels::MatMulParams product =
        qkv_.Params(x, batch.tokens, {qkv, qkv + keys, qkv + 2 * size_t{keys}});
    for (uint32_t i = 0; i < product.num_projections; ++i) {
      product.projections[i].y_stride = shape_.channels;
    }
    context.backend.Encode(product);
  }

  void EncodeConv(LayerContext& context, const Batch& batch, const LayerStates& states,
                  const float* x, float* out) const {
    context.backend.Encode(kernels::ShortConvParams{.batch = Sequences(batch),
                                                    .x = x,
                                                    .weight = Vector(Role::kDeltaConv),
                                                    .channels = shape_.channels,
                                                    .taps = parts_.spec.delta_net->conv_taps,
                                                    .state = states.conv,
                                                    .out = out});
  }

  void EncodeRule(LayerContext& context, const Batch& batch, const LayerStates& states,
                  const RuleInputs& inputs, float* out) const {
    context.backend.Encode(
        kernels::GatedDeltaRuleParams{.batch = Sequences(batch),
                                      .qkv = inputs.qkv,
                                      .decay = inputs.decay,
                                      .write = inputs.write,
                                      .decay_rate = Vector(Role::kDeltaDecayRate),
                                      .decay_bias = Vector(Role::kDeltaDecayBias),
                                      .key_heads = shape_.key_heads,
                                      .value_heads = shape_.value_heads,
                                      .dim = norm_.dim,
                                      .strided = parts_.spec.delta_net->strided_heads,
                                      .epsilon = norm_.epsilon,
                                      .state = states.matrix,
                                      .out = out});
  }

  model::StateShape shape_;
  ColumnParallelLinear qkv_;
  ColumnParallelLinear gates_;
  Norm norm_;  // of every value head
  RowParallelLinear output_;
};

}  // namespace

std::unique_ptr<AttentionBlock> MakeGatedDeltaNet(const AttentionParts& parts) {
  return std::make_unique<GatedDeltaNet>(parts);
}

}  // namespace tandem::worker
