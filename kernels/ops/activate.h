// Activate: the activation function of a feed-forward block, with its gate.
#ifndef TANDEM_KERNELS_OPS_ACTIVATE_H_
#define TANDEM_KERNELS_OPS_ACTIVATE_H_

#include <cstdint>
#include <string_view>

#include "kernels/ops/array.h"

namespace tandem::kernels {

// Activation functions: silu(x) = x sigmoid(x); GELU in its tanh form; and gpt-oss's gate, clamped:
// with g = min(gate, 7) and u = up within +-7, g sigmoid(1.702 g) (u + 1). kSigmoid is a gate
// alone: sigmoid(x).
enum class Activation { kSilu, kGeluTanh, kClampedSwiGlu, kSigmoid };

// out = f(gate) * up, or f(gate) if up is null (not for kClampedSwiGlu); `out` may equal `gate` or
// `up`. If rows have scales, a row of gate is multiplied by its own first.
struct ActivateParams {
  static constexpr std::string_view kName = "Activate";

  Activation function;
  const float* gate;
  const float* up;
  uint32_t rows;
  uint32_t cols;
  float* out;
  const float* gate_scale = nullptr;  // (rows) or null

  template <class Params, class Visit>
  static void ForEachPointer(Params& p, Visit&& visit) {
    visit("gate", p.gate, In(p.rows, p.cols));
    visit("up", p.up, In(p.rows, p.cols).Optional());
    visit("gate_scale", p.gate_scale, In(p.rows).Optional());
    visit("out", p.out, Out(p.rows, p.cols));
  }
};

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_OPS_ACTIVATE_H_
