// Which rows a launch multiplies with which matrix of a weight, an expert's: rows sorted by matrix,
// as a list on the device says.
#ifndef TANDEM_KERNELS_CUDA_MOE_ROW_PIECES_H_
#define TANDEM_KERNELS_CUDA_MOE_ROW_PIECES_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

// Rows [first, first + count) of the order, all of one matrix.
struct RowPiece {
  uint32_t matrix;
  uint32_t first;
  uint32_t count;  // 0: there is no such piece
};

struct RowPieces {
  uint32_t rows = 0;                // of y, at most
  uint32_t size = 0;                // rows of a piece, at most
  uint32_t most = 0;                // pieces, the missing ones included
  const RowPiece* list = nullptr;   // null: there is none
  const uint32_t* order = nullptr;  // rows of y
  uint32_t rows_per_x = 1;          // consecutive rows of y that share a row of x

  __device__ __forceinline__ RowPiece Piece(uint32_t i) const { return list[i]; }
  __device__ __forceinline__ uint32_t RowOfY(const RowPiece& piece, uint32_t i) const {
    return order[piece.first + i];
  }
  __device__ __forceinline__ uint32_t RowOfX(const RowPiece& piece, uint32_t i) const {
    return RowOfY(piece, i) / rows_per_x;
  }
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_MOE_ROW_PIECES_H_
