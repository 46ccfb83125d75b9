// Source: Zhang and Sennrich, "Root mean square layer normalization", 2019.
#include <cmath>

#include "kernels/reference/ops.h"

namespace tandem::kernels::reference {
namespace {

double MeanSquare(const RmsNormParams& p, size_t row) {
  if (p.sum_squares != nullptr) return double{p.sum_squares[row]} / p.sum_dim;
  double squares = 0;
  for (size_t i = row * p.dim; i < (row + 1) * p.dim; ++i) {
    squares += double{p.residual[i]} * p.residual[i];
  }
  return squares / p.dim;
}

void NormRow(const RmsNormParams& p, const host::TaskContext& context) {
  const size_t begin = static_cast<size_t>(context.task) * p.dim;
  float* const residual = p.residual + begin;
  float* const out = p.out + size_t{context.task} * (p.out_stride == 0 ? p.dim : p.out_stride);
  if (p.add != nullptr) {
    for (uint32_t i = 0; i < p.dim; ++i) residual[i] += p.add[begin + i];
  }
  const auto scale = static_cast<float>(1.0 / std::sqrt(MeanSquare(p, context.task) + p.epsilon));
  for (uint32_t i = 0; i < p.dim; ++i) out[i] = residual[i] * scale * p.weight[i];
  if (p.gate == nullptr) return;
  for (uint32_t i = 0; i < p.dim; ++i) {
    const double gate = p.gate[begin + i];
    out[i] *= static_cast<float>(gate / (1.0 + std::exp(-gate)));
  }
}

}  // namespace

void EncodeOp(host::OpList& list, const RmsNormParams& params) {
  list.Add("rms_norm", params.rows, &NormRow, params);
}

}  // namespace tandem::kernels::reference
