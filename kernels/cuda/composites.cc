// Composite ops: a product is fused with the op before it, so that one launch computes its rows and
// rounds them; RopeWriteKv is the end of the product before it, or takes the norms of heads along.
#include <variant>

#include "kernels/cuda/attention/rope_write_kv.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/ops.h"

namespace tandem::kernels::cuda {
void EncodeOp(Stream& stream, DenseGemm& gemm, const NormMatMulParams& params) {
  EncodeProduct(stream, gemm, RowsOfNorm(params.norm), params.product);
}

void EncodeOp(Stream& stream, DenseGemm& gemm, const AttentionMatMulParams& params) {
  EncodeProduct(stream, gemm, params.attention, params.product);
}

void EncodeOp(Stream& stream, DenseGemm& gemm, const QkvParams& params) {
  if (EncodeQkvProduct(stream, gemm, params)) return;
  const RopeWriteKvParams& write = params.write;
  const auto take = [&](const NormParams& norm, const float* heads, uint32_t count, uint32_t dim) {
    const HeadNorm taken = HeadNormOf(norm, heads, write.tokens * count, dim);
    if (taken.heads == nullptr) VisitPart(norm, [&](const auto& op) { EncodeOp(stream, op); });
    return taken;
  };
  // V's first: it may be of what k is before its own.
  HeadNorms norms;
  norms.v = take(params.v_norm, write.v, write.pages.kv_heads, write.pages.value_dim);
  norms.q = take(params.q_norm, write.q, write.heads, write.pages.head_dim);
  norms.k = take(params.k_norm, write.k, write.pages.kv_heads, write.pages.head_dim);
  EncodeRopeWriteKv(stream, write, norms);
}

void EncodeOp(Stream& stream, DenseGemm& gemm, const FeedForwardParams& params) {
  const HiddenRows rows = {gemm, params};
  std::visit([&](const auto& down) { EncodeProduct(stream, gemm, rows, down); }, params.down);
}

}  // namespace tandem::kernels::cuda
