// Composite ops: a product takes the op before it along, so that one launch computes its rows and
// rounds them.
#include <variant>

#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {
namespace {

RowsBefore Before(const NormParams& norm) {
  return std::visit([](const auto& op) { return RowsBefore(op); }, norm);
}

}  // namespace

void EncodeOp(Stream& stream, DenseGemm& gemm, const NormMatMulParams& params) {
  EncodeProduct(stream, gemm, Before(params.norm), params.product);
}

void EncodeOp(Stream& stream, DenseGemm& gemm, const QkvParams& params) {
  EncodeProduct(stream, gemm, Before(params.norm), params.product);
  for (const NormParams* norm : {&params.v_norm, &params.q_norm, &params.k_norm})
    VisitPart(*norm, [&](const auto& op) { EncodeOp(stream, op); });
  EncodeOp(stream, params.write);
}

void EncodeOp(Stream& stream, DenseGemm& gemm, const FeedForwardParams& params) {
  EncodeProduct(stream, gemm, Before(params.norm), params.up);
  std::visit([&](const auto& down) { EncodeProduct(stream, gemm, params.activate, down); },
             params.down);
}

}  // namespace tandem::kernels::cuda
