// Products of an expert's block-quantised weights with rows that chose it, on tensor cores in
// bytes: for more rows than the grouped GEMV takes, with its bits.
#ifndef TANDEM_KERNELS_CUDA_MOE_BLOCK_GEMM_H_
#define TANDEM_KERNELS_CUDA_MOE_BLOCK_GEMM_H_

#include <cstdint>

#include "common/tensor/type.h"
#include "kernels/cuda/device/int8_group.h"
#include "kernels/cuda/matmul/gemv.h"
#include "kernels/cuda/moe/row_pieces.h"
#include "kernels/cuda/rows/quantize_rows.h"
#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

// Tokens up to which experts' products are made in bytes: tiles' work grows with the tokens, that
// of dequantising does not.
inline constexpr uint32_t kMaxBlockGemmTokens = 256;

// Tiles have 16 or 32 rows of x. The narrower one, if it holds what a matrix gets.
constexpr uint32_t GemmTileSize(uint32_t rows) { return rows <= 16 ? 16 : 32; }

// Whether tiles of 64 rows are enough blocks. They read the inputs less often than those of 32, but
// must not leave multiprocessors idle.
inline bool FillTallTiles(const Stream& stream, uint32_t rows, uint32_t pieces) {
  return rows / 64 * pieces >= stream.multiprocessors();
}

// x from EncodeQuantizeRows. Offsets in it are 32 bits, in units of 16 bytes: 64 GiB.
struct GemmInputs {
  const Int8Group* groups;
  uint32_t groups_of_row;
};

// rows.size is a GemmTileSize.
void EncodeBlockGemm(Stream& stream, tensor::Type type, const MatVecParts& parts,
                     const GemmInputs& x, const RowPieces& rows, ColumnRange columns);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_BLOCK_GEMM_H_
