// The products of Q, K and V, which rotate heads and write pages themselves where they can.
#include <variant>

#include "common/tensor/type.h"
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/block_product.h"
#include "kernels/cuda/matmul/gemv.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/matmul/rope_end.h"
#include "kernels/cuda/matmul/tile_shapes.h"

namespace tandem::kernels::cuda {
namespace {

bool IsMissing(const NormParams& norm) { return std::holds_alternative<std::monostate>(norm); }

// Whether projection i gives `heads` heads of `dim` values in `y`, one after the other.
bool Gives(const MatMulParams& product, uint32_t i, const float* y, uint32_t heads, uint32_t dim) {
  const Projection& projection = product.projections[i];
  const uint32_t rows = projection.weight.rows;
  return projection.y == y && rows == heads * dim && projection.y_stride == rows;
}

// Whether all three are parts of one launch of block-quantised weights.
bool InOneLaunch(const MatMulParams& product) {
  if (product.num_projections != 3 || product.tokens > kMaxBlockProductTokens) return false;
  const tensor::Type type = product.projections[0].weight.type;
  return MixTypes(type, product.projections[1].weight.type) &&
         MixTypes(type, product.projections[2].weight.type);
}

// Whether nothing but rotation happens to a head, by pairs that are in one unit of rows
// (rope_units.h).
bool OnlyRotates(const RopeWriteKvParams& write) {
  if (write.norm_epsilon != 0.0f || write.temperature_scale != 0.0f) return false;
  const uint32_t unit = write.tokens == 1 ? kMatVecUnit : LargestTile::kRows;
  const uint32_t dims = write.halves ? unit : 2;
  return write.rotary_begin == 0 && write.rotary_dims % dims == 0 &&
         write.pages.head_dim % dims == 0;
}

bool TakesRope(const QkvParams& params) {
  const RopeWriteKvParams& write = params.write;
  const KvPages& pages = write.pages;
  const bool plain_pages = !pages.latent && !pages.k_columns && IsPlain(pages.type);
  const bool no_norms =
      IsMissing(params.v_norm) && IsMissing(params.q_norm) && IsMissing(params.k_norm);
  return InOneLaunch(params.product) && params.product.tokens == write.tokens && no_norms &&
         plain_pages && OnlyRotates(write) &&
         Gives(params.product, 0, write.q, write.heads, pages.head_dim) &&
         Gives(params.product, 1, write.k, pages.kv_heads, pages.head_dim) &&
         Gives(params.product, 2, write.v, pages.kv_heads, pages.value_dim);
}

}  // namespace

bool EncodeQkvProduct(Stream& stream, DenseGemm& gemm, const QkvParams& params) {
  const bool takes_rope = TakesRope(params);
  EncodeProduct(stream, gemm, RowsOfNorm(params.norm), params.product,
                takes_rope ? RopeEnd{.on = true, .write = params.write} : RopeEnd());
  return takes_rope;
}

}  // namespace tandem::kernels::cuda
