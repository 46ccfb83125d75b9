// Row tiles: query rows of a sequence that read one KV head, and the positions visible to them.
// Device code.
#ifndef TANDEM_KERNELS_CUDA_ATTENTION_WORK_H_
#define TANDEM_KERNELS_CUDA_ATTENTION_WORK_H_

#include "kernels/cuda/attention/plan.h"

namespace tandem::kernels::cuda {

// Rows of one KV head, and the positions visible to them.
struct RowTile {
  uint32_t first_row = 0;    // among the sequence's rows of this KV head
  uint32_t rows = 0;         // at most tile_rows
  uint32_t first_token = 0;  // the sequence's first query row
  uint32_t first_head = 0;   // first head of the group, among this rank's heads
  uint32_t heads = 0;
  int32_t past = 0;   // position of the sequence's first query row
  int32_t begin = 0;  // positions [begin, end) are visible to some row
  int32_t end = 0;
  // Tiles of positions [first_kv_tile, end_kv_tile) have them: at least one if there are rows.
  uint32_t first_kv_tile = 0;
  uint32_t end_kv_tile = 0;
  const int32_t* table = nullptr;

  __device__ uint32_t kv_tiles() const { return end_kv_tile - first_kv_tile; }
  __device__ uint32_t Token(uint32_t row) const { return first_token + (first_row + row) / heads; }
  __device__ uint32_t Head(uint32_t row) const { return first_head + (first_row + row) % heads; }
  // Positions [First(row), Last(row)] are visible to the row.
  __device__ int32_t Last(uint32_t row) const {
    return past + static_cast<int32_t>((first_row + row) / heads);
  }
  __device__ int32_t First(uint32_t row, const AttentionParams& p) const {
    if (p.window == 0) return 0;
    const auto last = static_cast<uint32_t>(max(Last(row), 0));
    if (p.chunked) return static_cast<int32_t>(last / p.window * p.window);
    return last + 1 > p.window ? static_cast<int32_t>(last + 1 - p.window) : 0;
  }
};

// Tiles of sequence s begin at FirstTile(s): the rows before it, in tiles, rounded down, plus one
// per sequence. So no two sequences share a tile, and no prefix sum over sequences is needed.
__device__ inline uint32_t FirstTile(const AttentionArgs& a, uint32_t seq) {
  if (a.tiles_per_seq != 0) return seq * a.tiles_per_seq;
  const uint32_t group = a.p.heads < a.p.heads_per_kv ? a.p.heads : a.p.heads_per_kv;
  return static_cast<uint32_t>(a.p.query_offsets[seq]) * group / a.tile.tile_rows + seq;
}

__device__ inline uint32_t SequenceOfTile(const AttentionArgs& a, uint32_t tile) {
  if (a.tiles_per_seq != 0) return tile / a.tiles_per_seq;
  uint32_t low = 0, high = a.p.num_seqs;  // the last sequence that begins at or before the tile
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (FirstTile(a, middle) <= tile ? low : high) = middle;
  }
  return low;
}

// Tile `tile` of a sequence's rows of one KV head. No rows: the sequence is of another class, or
// has ended.
__device__ inline RowTile TileOfSequence(const AttentionArgs& a, uint32_t seq, uint32_t tile,
                                         uint32_t kv_head) {
  const AttentionParams& p = a.p;
  RowTile t;
  const uint32_t group = p.heads < p.heads_per_kv ? p.heads : p.heads_per_kv;
  const uint32_t first = (p.first_kv_head + kv_head) * p.heads_per_kv;
  t.first_head = first > p.first_head ? first - p.first_head : 0;
  const uint32_t end_head = min(first + p.heads_per_kv - p.first_head, p.heads);
  t.heads = end_head - t.first_head;
  t.first_token = static_cast<uint32_t>(p.query_offsets[seq]);
  const uint32_t tokens = static_cast<uint32_t>(p.query_offsets[seq + 1]) - t.first_token;
  t.first_row = tile * a.tile.tile_rows;
  const bool in_class = tokens * group > a.rows.above && tokens * group <= a.rows.upto;
  if (!in_class || t.first_row >= tokens * t.heads) return t;
  t.rows = min(a.tile.tile_rows, tokens * t.heads - t.first_row);
  t.past = p.context_lens[seq] - static_cast<int32_t>(tokens);
  t.begin = t.First(0, p);
  t.end = max(t.Last(t.rows - 1) + 1, 0);
  const uint32_t positions = a.tile.tile_positions;
  t.first_kv_tile = static_cast<uint32_t>(t.begin) / positions;
  t.end_kv_tile =
      max((static_cast<uint32_t>(t.end) + positions - 1) / positions, t.first_kv_tile + 1);
  t.table = p.block_tables + static_cast<size_t>(p.table_rows[seq]) * p.table_stride;
  return t;
}

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ATTENTION_WORK_H_
