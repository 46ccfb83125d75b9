// Source: Shazeer, "GLU variants improve transformer", 2020.
#include <cmath>

#include "kernels/reference/ops.h"

namespace tandem::kernels::reference {
namespace {

void GateRow(const SwiGluParams& p, const host::TaskContext& context) {
  const size_t begin = static_cast<size_t>(context.task) * p.cols;
  for (size_t i = begin; i < begin + p.cols; ++i) {
    const double gate = p.gate[i];
    p.out[i] = static_cast<float>(gate / (1.0 + std::exp(-gate))) * p.up[i];
  }
}

}  // namespace

void EncodeSwiGlu(host::OpList& list, const SwiGluParams& params) {
  list.Add("swiglu", params.rows, &GateRow, params);
}

}  // namespace tandem::kernels::reference
