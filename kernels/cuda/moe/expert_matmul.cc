#include "kernels/cuda/moe/expert_matmul.h"

#include "kernels/cuda/matmul/column_window.h"

namespace tandem::kernels::cuda {
namespace {

bool Alike(const ExpertProjection& a, const ExpertProjection& b) {
  return a.weight.type == b.weight.type && a.weight.rows == b.weight.rows &&
         a.weight.cols == b.weight.cols && ColumnWindow(a.weight) == ColumnWindow(b.weight);
}

void EncodeAlike(Stream& stream, const ExpertMatMulParams& params) {
  // The tensor cores round weights to BF16, which would lose precision for F32.
  const bool few =
      params.tokens <= kFewTokens || params.projections[0].weight.type == tensor::Type::kF32;
  if (params.weights != nullptr) {
    (few ? EncodeGroupedGemvDown : EncodeGroupedGemmDown)(stream, params);
  } else {
    (few ? EncodeGroupedGemvUp : EncodeGroupedGemmUp)(stream, params);
  }
}

}  // namespace

void EncodeOp(Stream& stream, const ExpertMatMulParams& params) {
  if (params.tokens == 0) return;
  if (params.num_projections == 1 || Alike(params.projections[0], params.projections[1])) {
    EncodeAlike(stream, params);
    return;
  }
  for (uint32_t i = 0; i < params.num_projections; ++i) {
    ExpertMatMulParams one = params;
    one.num_projections = 1;
    one.projections[0] = params.projections[i];
    EncodeAlike(stream, one);
  }
}

}  // namespace tandem::kernels::cuda
