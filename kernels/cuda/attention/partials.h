// Partial results of row tiles that are more than one piece, merged in a binary tree. Device code.
//
// Node (level, i) of the tree stands for pieces [i 2^level, (i + 1) 2^level), pieces being numbered
// from position 0; nodes of which nothing is visible to the row tile are left out. A block computes
// a run of consecutive pieces and merges a node with its left sibling as soon as it has both, like
// the carries of a binary counter: what is left are the largest nodes of the run, at most two per
// level. They stay on a stack in global memory. If the run is the whole row tile, the rest is
// merged from the right and written; else split_kv_merge.cu continues with the nodes of all runs,
// in the same tree. So which block computes what does not change a bit.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_PARTIALS_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_PARTIALS_H_

#include "kernels/cuda/attention/online_softmax.h"
#include "kernels/cuda/attention/work_list.h"

namespace tandem::kernels::cuda {

// The tree over the pieces of a row tile from `first` on, as far as known from piece `begin` on.
struct PieceTree {
  uint32_t first;
  uint32_t begin;

  // How many nodes, one after the other, the node of `level` that ends with piece `last` is merged
  // with: those to its left that it completes.
  __device__ uint32_t Merges(uint32_t last, uint32_t level) const {
    uint32_t merges = 0;
    for (; (last >> level & 1) != 0; ++level) {
      const uint32_t sibling_end = last >> level << level;
      if (sibling_end <= first) continue;  // nothing of it is visible
      if (max(sibling_end - (1u << level), first) < begin) break;
      ++merges;
    }
    return merges;
  }

  // Level of the largest node that begins with `piece` and ends at or before `end`.
  __device__ uint32_t LevelAt(uint32_t piece, uint32_t end) const {
    uint32_t level = 0;
    while (true) {
      const uint32_t node = piece >> (level + 1) << (level + 1);
      if ((node != piece && piece != first) || end - node < 2u << level) return level;
      ++level;
    }
  }
  __device__ static uint32_t NodeEnd(uint32_t piece, uint32_t level) {
    return ((piece >> level) + 1) << level;
  }
};

// Consecutive pieces of a row tile that one block computes: tiles of positions [begin, end).
struct Run {
  uint32_t begin;
  uint32_t end;
};

// The part of a row tile, which begins at unit `item_begin`, in units [begin, end) of the list.
__device__ inline Run RunOf(const AttentionArgs& a, const RowTile& tile, uint32_t item_begin,
                            uint32_t begin, uint32_t end) {
  const uint32_t from = begin > item_begin ? begin - item_begin : 0;
  return {PieceFrom(a, tile, from), PieceFrom(a, tile, end - item_begin)};
}

// Where the partial results of a share's run begin.
__device__ inline uint32_t FirstSlot(const AttentionArgs& a, const RowTile& tile, const Run& run,
                                     uint32_t share) {
  const bool tail = run.begin != tile.first_kv_tile;
  return share * (a.head_slots + a.tail_slots) + (tail ? a.head_slots : 0);
}

// What a block computes next.
struct Assignment {
  WorkItem item;
  RowTile tile;
  Run run;
  RowRange all_visible;  // positions that need no mask: visible to every row of the tile

  // Whether the run is the whole row tile.
  __device__ bool whole() const {
    return run.begin == tile.first_kv_tile && run.end == tile.end_kv_tile;
  }
};

// What a block leaves about its share for the merge, which need not go through the work list again.
struct ShareRecord {
  uint32_t total;   // units of the list
  WorkItem first;   // of the share, unless it has no units
  Assignment last;  // likewise
};
static_assert(sizeof(ShareRecord) == kShareRecordBytes);

__device__ inline Assignment Assign(const AttentionArgs& a, const WorkItem& item,
                                    const RowTile& tile, const Run& run) {
  const RowRange top = VisibleRange(a, tile, 0), bottom = VisibleRange(a, tile, tile.rows - 1);
  return {item, tile, run, {.begin = bottom.begin, .end = top.end}};
}

// A row of a slot.
class PartialRow {
 public:
  __device__ PartialRow(const AttentionArgs& a, uint32_t slot, uint32_t row)
      : values_(a.sums + (static_cast<size_t>(slot) * a.slot_rows + row) * a.sum_stride),
        state_(a.states + static_cast<size_t>(slot) * a.slot_rows + row) {}

  __device__ float value(uint32_t column) const { return values_[column]; }
  __device__ SoftmaxState state() const {
    const float2 state = *state_;
    return {.largest = state.x, .sum = state.y};
  }
  __device__ void Write(uint32_t column, float sum) const { values_[column] = sum; }
  // Two columns, of which the first is even.
  __device__ float2 two(uint32_t column) const {
    return *reinterpret_cast<const float2*>(values_ + column);
  }
  __device__ void WriteTwo(uint32_t column, float2 sums) const {
    *reinterpret_cast<float2*>(values_ + column) = sums;
  }
  // Called by one thread per row. Others read it behind the next barrier.
  __device__ void WriteState(const SoftmaxState& state) const {
    *state_ = make_float2(state.largest, state.sum);
  }

 private:
  float* const values_;
  float2* const state_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_PARTIALS_H_
