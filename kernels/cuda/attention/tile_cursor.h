// The page rows of a tile of positions, and iteration of threads over a tile of rows.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_TILE_CURSOR_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_TILE_CURSOR_H_

#include "kernels/cuda/attention/partials.h"
#include "kernels/cuda/device/async_copy.h"
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

// Waits for the first of `tiles` tiles that are loading, each of which is a group of copies.
__device__ inline void WaitForFirstOf(uint32_t tiles) {
  static_assert(kMostStages <= 4);
  if (tiles == 3) {
    WaitForCopies<2>();
  } else if (tiles == 2) {
    WaitForCopies<1>();
  } else {
    WaitForCopies<0>();
  }
}

// Iterates over the tiles of a run. The block table is read ahead of where rows are needed: Fetch
// starts the load of a tile's entries, and Keep, a tile later, puts the rows where all threads see
// them, so that no thread waits for it.
template <uint32_t kPositions>
class TileCursor {
 public:
  // Tiles whose rows are kept: those of the first loads of a run, and the next one.
  static constexpr uint32_t kSlots = kMostStages;
  static constexpr size_t kSharedBytes = SharedBytes<uint32_t>(kSlots * kPositions);
  // No query row attends to the position: its block table entry is not read.
  static constexpr uint32_t kNoRow = 0xffffffffu;

  __device__ TileCursor(const AttentionArgs& a, SharedArray<Assignment> current, SharedArena& arena)
      : a_(a), current_(current), rows_(arena.Take<uint32_t>(kSlots * kPositions)) {}

  // Begins with the current run; finds the rows of its first `count` tiles, which are read after a
  // barrier, and fetches those of the next one. All loads are started before one is waited for.
  __device__ void Begin(uint32_t count) {
    next_ = Now().run.begin;
    end_ = Now().run.end;
    Fetch(next_ + count);
    for (uint32_t i = threadIdx.x; i < count * kPositions; i += blockDim.x) {
      const uint32_t tile = next_ + i / kPositions;
      rows_[tile % kSlots * kPositions + i % kPositions] = RowOf(tile, i % kPositions);
    }
  }
  __device__ uint32_t next() const { return next_; }
  __device__ uint32_t end() const { return end_; }
  __device__ void Advance() { ++next_; }

  // Looks up the rows of a tile, one row per thread.
  __device__ void Fetch(uint32_t tile) {
    if (threadIdx.x < kPositions) fetched_ = RowOf(tile, threadIdx.x);
  }
  // Keeps what the last Fetch has found. Read it after a barrier.
  __device__ void Keep(uint32_t tile) const {
    if (threadIdx.x < kPositions) rows_[tile % kSlots * kPositions + threadIdx.x] = fetched_;
  }
  // Indices of page rows, or kNoRow.
  __device__ SharedArray<uint32_t> Rows(uint32_t tile) const {
    return rows_ + tile % kSlots * kPositions;
  }

 private:
  __device__ Assignment Now() const { return current_[0]; }

  // The page row of a position of a tile.
  __device__ uint32_t RowOf(uint32_t tile, uint32_t i) const {
    const Assignment now = Now();
    const auto position = static_cast<int32_t>(tile * kPositions + i);
    if (tile >= end_ || position < now.tile.begin || position >= now.tile.end) return kNoRow;
    const uint32_t size = a_.p.pages.block_size;
    const auto at = static_cast<uint32_t>(position);
    const auto block = static_cast<uint32_t>(now.tile.table[at / size]);
    return (block * a_.p.pages.kv_heads + now.item.head) * size + at % size;
  }

  const AttentionArgs& a_;
  const SharedArray<Assignment> current_;
  uint32_t next_ = 0;
  uint32_t end_ = 0;
  uint32_t fetched_ = kNoRow;
  const SharedArray<uint32_t> rows_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_TILE_CURSOR_H_
