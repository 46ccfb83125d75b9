// What the attention kernels have in common: a block's way through its share of the work list.
// Device code.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_ATTEND_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_ATTEND_H_

#include "kernels/cuda/attention/partials.h"

namespace tandem::kernels::cuda {

// At the end of a piece: merges its result with the nodes that it completes, which are on top of
// the `kept` nodes of the run, and keeps it; or writes it, if the row tile is complete with it.
template <typename Attention>
__device__ void EndPiece(const AttentionArgs& a, const Assignment& now, uint32_t kv_tile,
                         uint32_t& kept, Attention& attention) {
  const uint32_t shift = a.piece_shift;
  const uint32_t first_slot = FirstSlot(a, now.tile, now.run, blockIdx.x);
  const bool complete = now.whole() && kv_tile + 1 == now.run.end;
  const PieceTree tree = {now.tile.first_kv_tile >> shift, now.run.begin >> shift};
  const uint32_t merges = complete ? kept : tree.Merges(kv_tile >> shift, 0);
  attention.SumWeights();
  for (uint32_t n = 0; n < merges; ++n) attention.Merge(first_slot + --kept);
  if (complete) {
    attention.WriteOutput();
  } else {
    __syncthreads();  // the slot's previous states, and the warps' sums, have been read
    attention.Store(first_slot + kept++);
  }
}

// The current run. Loads go on across its pieces and while a piece ends.
template <typename Attention, typename Tiles>
__device__ void AttendToRun(const AttentionArgs& a, SharedArray<Assignment> current,
                            Attention& attention, Tiles& tiles) {
  tiles.StartLoads();
  attention.Begin();
  uint32_t kept = 0;
  bool begins = true;  // a piece
  while (tiles.WaitForTile()) {
    if (begins) attention.Clear();
    attention.AddTile(tiles.k(), tiles.v(), tiles.position());
    tiles.ReleaseTile();
    const Assignment now = current[0];
    begins = tiles.tile() == now.run.end || (tiles.tile() & ((1u << a.piece_shift) - 1)) == 0;
    if (begins) EndPiece(a, now, tiles.tile() - 1, kept, attention);
  }
}

// `attention` and `tiles` work on `current`, which all threads read where they need it: it would
// take too many registers.
template <typename Attention, typename Tiles>
__device__ void AttendToShare(const AttentionArgs& a, const WorkList& list,
                              SharedArray<Assignment> current, Attention& attention, Tiles& tiles) {
  const auto begin = [&] { return list.bounds().Begin(blockIdx.x); };
  const auto end = [&] { return list.bounds().Begin(blockIdx.x + 1); };
  const bool records = threadIdx.x == 0 && a.records != nullptr;
  if (records) a.records[blockIdx.x].total = list.bounds().total();
  if (begin() == end()) return;  // the whole block
  WorkItem item = list.Find(begin());
  if (records) a.records[blockIdx.x].first = item;
  while (true) {
    const RowTile tile = TileOf(a, item);
    const Run run = RunOf(a, tile, item.begin, begin(), end());
    __syncthreads();  // the previous assignment, and its queries and tiles, have been used
    if (threadIdx.x == 0) current[0] = Assign(a, item, tile, run);
    __syncthreads();
    if (run.begin < run.end) AttendToRun(a, current, attention, tiles);
    const Assignment done = current[0];
    if (done.item.begin + done.tile.kv_tiles() >= end()) {
      if (records) a.records[blockIdx.x].last = done;
      return;
    }
    item = NextItem(a, done.item, done.tile.kv_tiles());
  }
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_ATTEND_H_
