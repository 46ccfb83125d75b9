// Rows of logits in pieces, which the blocks of a call share.
//
// A row's pieces depend on the vocabulary alone: what is formed per piece and put together in the
// order of pieces has the same bits, however many blocks share the row.
#ifndef TANDEM_KERNELS_CUDA_SAMPLING_PIECES_H_
#define TANDEM_KERNELS_CUDA_SAMPLING_PIECES_H_

#include <cstdint>

#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

// Ids of a piece per thread of a block.
inline constexpr uint32_t kIdsPerThread = 4;

struct RowPieces {
  uint32_t pieces;  // of a row
  uint32_t parts;   // blocks that share a row; part i has every parts-th piece from i on
};

// Enough parts for `rows` rows to fill the device, as far as there are pieces. Blocks have
// `threads` threads.
RowPieces CutRows(const Stream& stream, uint32_t rows, uint32_t vocab, uint32_t threads);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_SAMPLING_PIECES_H_
