// The page rows of a tile of positions, and iteration of threads over a tile of rows.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_TILE_CURSOR_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_TILE_CURSOR_H_

#include "kernels/cuda/attention/partials.h"
#include "kernels/cuda/device/shared_array.h"

namespace tandem::kernels::cuda {

// Calls `use(row, piece)` once for every piece of kRows rows of `pieces` each; neighbouring threads
// take neighbouring pieces.
template <uint32_t kRows, uint32_t kThreads, typename Use>
__device__ inline void ForEachPiece(uint32_t pieces, Use use) {
  const uint32_t row_step = kThreads / pieces, piece_step = kThreads % pieces;
  uint32_t row = threadIdx.x / pieces, piece = threadIdx.x % pieces;
  while (row < kRows) {
    use(row, piece);
    row += row_step;
    piece += piece_step;
    if (piece >= pieces) {
      piece -= pieces;
      ++row;
    }
  }
}

// Iterates over the tiles of a run, reading block tables two tiles ahead.
template <uint32_t kPositions>
class TileCursor {
 public:
  static constexpr size_t kSharedBytes = SharedBytes<uint32_t>(2 * kPositions);
  // No query row attends to the position: its block table entry is not read.
  static constexpr uint32_t kNoRow = 0xffffffffu;

  __device__ TileCursor(const AttentionArgs& a, SharedArray<Assignment> current, SharedArena& arena)
      : a_(a), current_(current), rows_(arena.Take<uint32_t>(2 * kPositions)) {}

  // Begins with the current run.
  __device__ void Begin() {
    const Assignment now = current_[0];
    next_ = now.run.begin;
    end_ = now.run.end;
  }
  __device__ uint32_t next() const { return next_; }
  __device__ uint32_t end() const { return end_; }
  __device__ void Advance() { ++next_; }

  // Looks up the rows of a tile, one row per thread. Read the result after a barrier.
  __device__ void FindRows(uint32_t tile) const {
    if (threadIdx.x >= kPositions || tile >= end_) return;
    const Assignment now = current_[0];
    const auto position = static_cast<int32_t>(tile * kPositions + threadIdx.x);
    uint32_t row = kNoRow;
    if (position >= now.tile.begin && position < now.tile.end) {
      const uint32_t size = a_.p.pages.block_size;
      const auto at = static_cast<uint32_t>(position);
      const auto block = static_cast<uint32_t>(now.tile.table[at / size]);
      row = (block * a_.p.pages.kv_heads + now.item.head) * size + at % size;
    }
    rows_[tile % 2 * kPositions + threadIdx.x] = row;
  }
  // The result of FindRows: indices of page rows, or kNoRow.
  __device__ SharedArray<uint32_t> Rows(uint32_t tile) const {
    return rows_ + tile % 2 * kPositions;
  }

 private:
  const AttentionArgs& a_;
  const SharedArray<Assignment> current_;
  uint32_t next_ = 0;
  uint32_t end_ = 0;
  const SharedArray<uint32_t> rows_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_TILE_CURSOR_H_
