// GatedDeltaRule: linear attention with a matrix as state.
#ifndef TANDEM_KERNELS_OPS_GATED_DELTA_RULE_H_
#define TANDEM_KERNELS_OPS_GATED_DELTA_RULE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"
#include "kernels/ops/recurrent_batch.h"

namespace tandem::kernels {

// The gated delta rule (Yang et al., 2024, arXiv:2412.06464), token by token. A row of qkv has the
// queries and keys of key_heads heads and the values of value_heads heads, `dim` values each: all
// q, all k, all v. With q, k and v of value head h (its key head is h % key_heads if `strided`,
// else h / (value_heads / key_heads)), and M the head's state:
//
//   q = q / sqrt(|q|^2 + epsilon) / sqrt(dim),   k = k / sqrt(|k|^2 + epsilon)
//   M = exp(decay_rate[h] * softplus(decay[t, h] + decay_bias[h])) M
//   M = M + k (sigmoid(write[t, h]) (v - M^T k))^T
//   out[t, h] = M^T q
//
// Sums run over the rows of M from the first on, so that a row's bits do not depend on the chunk or
// on the batch.
struct GatedDeltaRuleParams {
  static constexpr std::string_view kName = "GatedDeltaRule";

  RecurrentBatch batch;
  const float* qkv;         // (T, (2 key_heads + value_heads) dim)
  const float* decay;       // (T, value_heads)
  const float* write;       // (T, value_heads)
  const float* decay_rate;  // (value_heads), negative
  const float* decay_bias;  // (value_heads)
  uint32_t key_heads;       // of this rank
  uint32_t value_heads;     // of this rank, a multiple of key_heads
  uint32_t dim;
  bool strided;
  float epsilon;
  float* state;  // (num_slots, value_heads, dim keys, dim values)
  float* out;    // (T, value_heads, dim)

  constexpr uint32_t channels() const { return (2 * key_heads + value_heads) * dim; }

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    RecurrentBatch::ForEachPointer(p.batch, visit);
    visit("qkv", p.qkv, In(p.batch.tokens, p.channels()));
    visit("decay", p.decay, In(p.batch.tokens, p.value_heads));
    visit("write", p.write, In(p.batch.tokens, p.value_heads));
    visit("decay_rate", p.decay_rate, In(p.value_heads));
    visit("decay_bias", p.decay_bias, In(p.value_heads));
    visit("state", p.state, InOut(p.batch.num_slots, size_t{p.value_heads} * p.dim * p.dim));
    visit("out", p.out, Out(p.batch.tokens, size_t{p.value_heads} * p.dim));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_GATED_DELTA_RULE_H_
