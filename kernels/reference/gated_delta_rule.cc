// Source: Yang, Kautz and Hatamizadeh, "Gated delta networks: improving Mamba2 with delta rule",
// 2024.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/ops.h"

namespace tandem::kernels::reference {
namespace {

// The heads of one token that the rule reads.
struct Token {
  std::vector<double> q;
  std::vector<double> k;
  const float* v;
  double decay;
  double write;
};

std::vector<double> Normed(const float* x, uint32_t dim, double epsilon, double scale) {
  double squares = 0;
  for (uint32_t i = 0; i < dim; ++i) squares += double{x[i]} * x[i];
  std::vector<double> normed(x, x + dim);
  for (double& value : normed) value *= scale / std::sqrt(squares + epsilon);
  return normed;
}

double Softplus(double x) { return x > 30.0 ? x : std::log1p(std::exp(x)); }

Token ReadToken(const GatedDeltaRuleParams& p, size_t row, uint32_t head) {
  const uint32_t key_head = p.strided ? head % p.key_heads : head / (p.value_heads / p.key_heads);
  const float* const qkv = p.qkv + row * p.channels();
  const size_t at = row * p.value_heads + head;
  return {
      .q = Normed(qkv + key_head * p.dim, p.dim, p.epsilon, 1.0 / std::sqrt(p.dim)),
      .k = Normed(qkv + (p.key_heads + key_head) * p.dim, p.dim, p.epsilon, 1.0),
      .v = qkv + (2 * p.key_heads + head) * p.dim,
      .decay = std::exp(p.decay_rate[head] * Softplus(double{p.decay[at]} + p.decay_bias[head])),
      .write = 1.0 / (1.0 + std::exp(-double{p.write[at]}))};
}

// One column of the state, which no other depends on.
void UpdateColumn(const Token& token, uint32_t dim, uint32_t column, float* state, float* out) {
  double predicted = 0;
  for (uint32_t i = 0; i < dim; ++i) {
    predicted += token.k[i] * (token.decay * state[size_t{i} * dim + column]);
  }
  const double delta = token.write * (token.v[column] - predicted);
  double sum = 0;
  for (uint32_t i = 0; i < dim; ++i) {
    float& cell = state[size_t{i} * dim + column];
    cell = static_cast<float>(token.decay * cell + token.k[i] * delta);
    sum += token.q[i] * cell;
  }
  out[column] = static_cast<float>(sum);
}

void RunHead(const GatedDeltaRuleParams& p, const host::TaskContext& context) {
  const uint32_t seq = context.task / p.value_heads, head = context.task % p.value_heads;
  const int32_t begin = p.batch.query_offsets[seq], end = p.batch.query_offsets[seq + 1];
  const int32_t context_len = p.batch.context_lens[seq];
  const size_t cells = size_t{p.dim} * p.dim;
  const auto state_of = [&](const int32_t* slots) {
    return p.state + (size_t(slots[seq]) * p.value_heads + head) * cells;
  };
  float* const state = state_of(p.batch.slots);
  if (context_len != 0 && context_len == end - begin) {
    std::fill_n(state, cells, 0.0f);
  } else if (context_len != 0 && p.batch.load_slots[seq] != p.batch.slots[seq]) {
    std::copy_n(state_of(p.batch.load_slots), cells, state);
  }
  for (int32_t row = begin; row < end; ++row) {
    float* const out = p.out + (size_t(row) * p.value_heads + head) * p.dim;
    if (context_len == 0) {
      std::fill_n(out, p.dim, 0.0f);
      continue;
    }
    const Token token = ReadToken(p, row, head);
    for (uint32_t column = 0; column < p.dim; ++column) {
      UpdateColumn(token, p.dim, column, state, out);
    }
    if (row + 1 - begin == p.batch.save_after[seq]) {
      std::copy_n(state, cells, state_of(p.batch.save_slots));
    }
  }
}

}  // namespace

void EncodeOp(host::OpList& list, const GatedDeltaRuleParams& params) {
  list.Add("gated_delta_rule", params.batch.num_seqs * params.value_heads, &RunHead, params);
}

}  // namespace tandem::kernels::reference
