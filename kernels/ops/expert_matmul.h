// ExpertMatMul: products with the experts that Route chose.
#ifndef TANDEM_KERNELS_OPS_EXPERT_MATMUL_H_
#define TANDEM_KERNELS_OPS_EXPERT_MATMUL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"
#include "kernels/ops/weight.h"

namespace tandem::kernels {

struct ExpertProjection {
  Weight weight;      // a matrix (n, cols) per expert
  const float* bias;  // (num_experts, n), experts bias_stride apart; or null
  uint32_t bias_stride;
  float* y;
};

// Grouped products with the experts that RouteParams chose. Up: y[t * top_k + j] = W[ids[t, j]]
// x[t] (+ bias); rows whose expert is on another rank are left unchanged. Down (weights given):
// y[t] = sum over j, in ascending order of expert id, of weights[t, j] * (W[ids[t, j]] x[t * top_k
// + j] (+ bias)), zeros if no expert is on this rank. On the CPU a row's result does not depend on
// other tokens.
struct ExpertMatMulParams {
  static constexpr std::string_view kName = "ExpertMatMul";

  const float* x;  // up: (T, col_count); down: (T * top_k, col_count); rows x_stride apart
  uint32_t tokens;
  uint32_t x_stride;
  uint32_t top_k;
  const int32_t* ids;     // (T, top_k), of all experts
  const float* weights;   // (T, top_k): down; null: up
  uint32_t expert_begin;  // the rank's experts: [expert_begin, expert_begin + num_experts)
  uint32_t num_experts;
  uint32_t num_projections;  // up: 1 or 2 (gate and up); down: 1
  std::array<ExpertProjection, 2> projections;

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    const bool down = p.weights != nullptr;
    const size_t pairs = size_t{p.tokens} * p.top_k;
    visit("x", p.x,
          Strided(Access::kIn, down ? pairs : p.tokens, p.projections[0].weight.col_count,
                  p.x_stride));
    visit("ids", p.ids, In(p.tokens, p.top_k));
    visit("weights", p.weights, In(p.tokens, p.top_k).Optional());
    for (uint32_t i = 0; i < p.num_projections; ++i) {
      auto& projection = p.projections[i];
      const uint32_t rows = projection.weight.rows;
      visit("weight", projection.weight);
      visit("bias", projection.bias,
            Strided(Access::kIn, p.num_experts, rows, projection.bias_stride).Optional());
      // Up leaves the rows of other ranks' experts unchanged.
      visit("y", projection.y,
            Dense(down ? Access::kOut : Access::kInOut, down ? p.tokens : pairs, rows));
    }
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_EXPERT_MATMUL_H_
