// Sources: Shazeer, "GLU variants improve transformer", 2020; Hendrycks and Gimpel, "Gaussian error
// linear units", 2016; gpt-oss's model card (2025) for the clamped gate.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/base/check.h"
#include "kernels/reference/ops.h"

namespace tandem::kernels::reference {
namespace {

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double Gelu(double x) {
  const double inner = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(inner));
}

// Minimum and maximum that propagate NaN.
double AtMost(double x, double limit) { return x > limit ? limit : x; }
double AtLeast(double x, double limit) { return x < limit ? limit : x; }

double Activated(Activation function, double gate, double up) {
  switch (function) {
    case Activation::kSilu:
      return gate * Sigmoid(gate) * up;
    case Activation::kGeluTanh:
      return Gelu(gate) * up;
    case Activation::kClampedSwiGlu: {
      const double g = AtMost(gate, 7.0);
      return g * Sigmoid(1.702 * g) * (AtLeast(AtMost(up, 7.0), -7.0) + 1.0);
    }
    case Activation::kSigmoid:
      return Sigmoid(gate) * up;
  }
  return 0.0;
}

void ActivateRow(const ActivateParams& p, const host::TaskContext& context) {
  const size_t begin = static_cast<size_t>(context.task) * p.cols;
  const double scale = p.gate_scale != nullptr ? p.gate_scale[context.task] : 1.0;
  for (size_t i = begin; i < begin + p.cols; ++i) {
    p.out[i] = static_cast<float>(
        Activated(p.function, scale * p.gate[i], p.up != nullptr ? double{p.up[i]} : 1.0));
  }
}

}  // namespace

void EncodeOp(host::OpList& list, const ActivateParams& params) {
  TANDEM_CHECK(params.up != nullptr || params.function != Activation::kClampedSwiGlu);
  list.Add("activate", params.rows, &ActivateRow, params);
}

}  // namespace tandem::kernels::reference
