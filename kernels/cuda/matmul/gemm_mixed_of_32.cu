// Floor: the bytes of the weights are read once; 2 * tokens * rows * columns operations on tensor
// cores, in bytes.
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/gemm_blocks.h"

namespace tandem::kernels::cuda {

void LaunchMixedGemmOf32(Stream& stream, const BlockGemmTask& task) {
  LaunchMixedGemm<BlockTypesOf32>(stream, task);
}

void EncodeMixedGemm(Stream& stream, const MatVecParts& parts, const GemmInputs& x,
                     const RowPieces& rows, ColumnRange columns) {
  const BlockGemmTask task = {parts, x, rows, {columns.First(32), columns.Units(32)}};
  if (BlockTypesOf256::Has(parts.part[0].type)) {
    LaunchMixedGemmOf256(stream, task);
  } else {
    LaunchMixedGemmOf32(stream, task);
  }
}

}  // namespace tandem::kernels::cuda
