// Floor: the bytes of the weight are read once; 2 * tokens * rows * columns operations on tensor
// cores, in bytes.
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/moe/block_gemm_kernel.h"

namespace tandem::kernels::cuda {

bool LaunchBlockGemmOf32(Stream& stream, tensor::Type type, const BlockGemmTask& task) {
  return BlockTypesOf32::Dispatch(
      type, [&](auto t) { LaunchBlockGemm<decltype(t)::value>(stream, task); });
}

void EncodeBlockGemm(Stream& stream, tensor::Type type, const MatVecParts& parts,
                     const GemmInputs& x, const RowPieces& rows, ColumnRange columns) {
  const BlockGemmTask task = {parts, x, rows, {columns.First(32), columns.Units(32)}};
  if (!LaunchBlockGemmOf32(stream, type, task) && !LaunchBlockGemmOf256(stream, type, task) &&
      !LaunchBlockGemmOfGrids(stream, type, task)) {
    LaunchBlockGemmOfFewBits(stream, type, task);
  }
}

}  // namespace tandem::kernels::cuda
