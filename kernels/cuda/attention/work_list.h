// The work list of a launch: row tiles in order, the KV heads of each in order, and of each its
// tiles of positions, which are the list's units. Block b of n computes the pieces that begin in
// units [b total / n, (b + 1) total / n). Device code.
//
// The list is not in memory. Every block adds up the units of all row tiles itself, a few per
// thread, and then looks for its own begin: at 64 sequences that is one round of loads from L2 and
// one scan of a block, about a microsecond where a launch takes longer. Work is even up to the part
// of a piece that begins before the end of a share: one 32k context among 64 is spread over as many
// blocks as its part of all tiles.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_WORK_LIST_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_WORK_LIST_H_

#include "kernels/cuda/attention/work.h"
#include "kernels/cuda/device/scan.h"

namespace tandem::kernels::cuda {

// A row tile of one KV head.
struct WorkItem {
  uint32_t row_tile = 0;
  uint32_t head = 0;
  uint32_t begin = 0;  // its first unit
};

__device__ inline RowTile TileOf(const AttentionArgs& a, const WorkItem& item) {
  const uint32_t seq = SequenceOfTile(a, item.row_tile);
  return TileOfSequence(a, seq, item.row_tile - FirstTile(a, seq), item.head);
}

// The first tile of positions of the first piece that begins `units` or more into a row tile; its
// end if none does.
__device__ inline uint32_t PieceFrom(const AttentionArgs& a, const RowTile& tile, uint32_t units) {
  if (units == 0) return tile.first_kv_tile;
  if (units >= tile.kv_tiles()) return tile.end_kv_tile;
  return min(a.PiecesUpTo(tile.first_kv_tile + units) << a.piece_shift, tile.end_kv_tile);
}

// Units of a row tile, over all KV heads.
__device__ inline uint32_t UnitsOf(const AttentionArgs& a, uint32_t seq, uint32_t tile) {
  const uint32_t heads = a.p.pages.kv_heads;
  if (a.even_groups) return heads * TileOfSequence(a, seq, tile, 0).kv_tiles();
  uint32_t units = 0;
  for (uint32_t head = 0; head < heads; ++head)
    units += TileOfSequence(a, seq, tile, head).kv_tiles();
  return units;
}

// The first row tile from `tile` on that has rows. A warp looks at 32 at a time.
__device__ inline uint32_t NextRowTile(const AttentionArgs& a, uint32_t tile) {
  const uint32_t lane = threadIdx.x % kWarp;
  for (;; tile += kWarp) {
    const uint32_t mine = tile + lane;
    uint32_t units = 0;
    if (mine < a.tiles) {
      const uint32_t seq = SequenceOfTile(a, mine);
      units = UnitsOf(a, seq, mine - FirstTile(a, seq));
    }
    const unsigned some = __ballot_sync(kAllLanes, units != 0);
    if (some != 0) return tile + static_cast<uint32_t>(__ffs(static_cast<int>(some))) - 1;
  }
}

// The item after `item`, of `units`. REQUIRES: there is one.
__device__ inline WorkItem NextItem(const AttentionArgs& a, const WorkItem& item, uint32_t units) {
  const WorkItem next = {item.row_tile, item.head + 1, item.begin + units};
  if (next.head < a.p.pages.kv_heads) return next;
  return {NextRowTile(a, item.row_tile + 1), 0, next.begin};
}

// Where the shares of a list of `total` units begin: as many units each, the first ones one more.
class ShareBounds {
 public:
  __device__ ShareBounds(const AttentionArgs& a, uint32_t total)
      : total_(total), each_(total / a.shares), longer_(total - each_ * a.shares) {}

  __device__ uint32_t total() const { return total_; }
  // The first unit of a share; that of the share after the last one is the end of the list.
  __device__ uint32_t Begin(uint32_t share) const { return each_ * share + min(longer_, share); }
  // The share that has a unit.
  __device__ uint32_t ShareOf(uint32_t unit) const {
    const uint32_t in_longer = longer_ * (each_ + 1);
    return unit < in_longer ? unit / (each_ + 1) : longer_ + (unit - in_longer) / each_;
  }

 private:
  uint32_t total_;
  uint32_t each_;
  uint32_t longer_;
};

class WorkList {
 public:
  static constexpr size_t kSharedBytes =
      SharedBytes<uint32_t>(kBlockReduceRoom) + SharedBytes<WorkItem>(1);

  // All threads of the block make every call together.
  __device__ WorkList(const AttentionArgs& a, SharedArena& arena)
      : a_(a),
        room_(arena.Take<uint32_t>(kBlockReduceRoom)),
        found_(arena.Take<WorkItem>(1)),
        each_((a.tiles + blockDim.x - 1) / blockDim.x),
        bounds_(a, 0) {
    uint32_t units = 0;
    ForMyRowTiles([&](uint32_t, uint32_t seq, uint32_t tile) { units += UnitsOf(a, seq, tile); });
    const Scan<uint32_t> scan = BlockScan(units, room_);
    before_ = scan.before;
    mine_ = units;
    bounds_ = ShareBounds(a, scan.total);
  }

  __device__ const ShareBounds& bounds() const { return bounds_; }

  // The item that has a unit.
  __device__ WorkItem Find(uint32_t unit) const {
    if (unit >= before_ && unit - before_ < mine_) found_[0] = FindAmongMine(unit);
    __syncthreads();
    return found_[0];
  }

 private:
  // use(row tile, sequence, tile of the sequence), for each_ consecutive row tiles per thread.
  template <typename Use>
  __device__ void ForMyRowTiles(Use use) const {
    const uint32_t first = threadIdx.x * each_, end = min(first + each_, a_.tiles);
    if (first >= end) return;
    uint32_t seq = SequenceOfTile(a_, first);
    for (uint32_t tile = first; tile < end; ++tile) {
      while (seq + 1 < a_.p.num_seqs && FirstTile(a_, seq + 1) <= tile) ++seq;
      use(tile, seq, tile - FirstTile(a_, seq));
    }
  }

  __device__ WorkItem FindAmongMine(uint32_t unit) const {
    if (each_ == 1 && a_.even_groups) {
      const uint32_t units = mine_ / a_.p.pages.kv_heads, head = (unit - before_) / units;
      return {threadIdx.x, head, before_ + head * units};
    }
    WorkItem item = {0, 0, before_};
    uint32_t in_seq = 0, of_seq = 0;
    uint32_t begin = before_;
    ForMyRowTiles([&](uint32_t row_tile, uint32_t seq, uint32_t tile) {
      if (begin <= unit) {
        item = {row_tile, 0, begin};
        of_seq = seq;
        in_seq = tile;
      }
      begin += UnitsOf(a_, seq, tile);
    });
    while (true) {
      const uint32_t units = TileOfSequence(a_, of_seq, in_seq, item.head).kv_tiles();
      const uint32_t whole =
          (unit - item.begin) / units;  // heads before the unit, if all are alike
      if (whole == 0) return item;
      const uint32_t heads = a_.even_groups ? whole : 1;
      item.head += heads;
      item.begin += heads * units;
    }
  }

  const AttentionArgs& a_;
  const SharedArray<uint32_t> room_;
  const SharedArray<WorkItem> found_;
  const uint32_t each_;  // row tiles per thread
  uint32_t before_;      // units of earlier threads' row tiles
  uint32_t mine_;
  ShareBounds bounds_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_WORK_LIST_H_
