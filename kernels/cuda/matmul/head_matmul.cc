#include "kernels/cuda/matmul/head_matmul.h"

namespace tandem::kernels::cuda {

void EncodeOp(Stream& stream, const HeadMatMulParams& params) {
  // The tensor cores round weights to BF16, which would lose precision for F32.
  if (params.tokens > kHeadTokens && params.weight.type != tensor::Type::kF32) {
    EncodeHeadTiles(stream, params);
  } else if (params.transposed) {
    EncodeHeadColumns(stream, params);
  } else {
    EncodeHeadRows(stream, params);
  }
}

}  // namespace tandem::kernels::cuda
