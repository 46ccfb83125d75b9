// Where the rows of a tile lie in the pages. Included by files that are compiled once per
// instruction set.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_PAGES_H_
#define TANDEM_KERNELS_CPU_ATTENTION_PAGES_H_

#include "kernels/cpu/attention/plan.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {

// Calls visit(pos, row, count) for each run of positions of [begin, end) whose rows lie one after
// the other.
template <typename Visit>
inline void ForRuns(const KvPages& kv, const int32_t* table, uint32_t kv_head, PositionRange range,
                    const void* pages, size_t row_bytes, Visit visit) {
  if (range.begin >= range.end) return;
  const auto block_size = static_cast<int32_t>(kv.block_size);
  table += range.begin / block_size;
  int32_t offset = range.begin % block_size;
  for (int32_t pos = range.begin; pos < range.end; ++table, offset = 0) {
    const size_t first = (static_cast<size_t>(*table) * kv.kv_heads + kv_head) * kv.block_size +
                         static_cast<size_t>(offset);
    int32_t count = block_size - offset;
    if (count > range.end - pos) count = range.end - pos;
    visit(pos, static_cast<const unsigned char*>(pages) + first * row_bytes, count);
    pos += count;
  }
}

// The addresses of the rows of a tile that starts at `tile`. Positions outside `wanted` get the
// address of its first row, so that every row can be read: their scores are masked, their values
// not used. REQUIRES: `wanted` is not empty.
inline void FindRows(const KvPages& kv, const int32_t* table, uint32_t kv_head, int32_t tile,
                     PositionRange wanted, const void* pages, size_t row_bytes,
                     const void* rows[kTilePositions]) {
  ForRuns(kv, table, kv_head, wanted, pages, row_bytes,
          [=](int32_t pos, const unsigned char* row, int32_t count) {
            for (int32_t i = pos - tile; i < pos - tile + count; ++i, row += row_bytes)
              rows[i] = row;
          });
  for (int32_t i = 0; i < wanted.begin - tile; ++i) rows[i] = rows[wanted.begin - tile];
  for (int32_t i = wanted.end - tile; i < kTilePositions; ++i) rows[i] = rows[wanted.begin - tile];
}

inline constexpr int kGroups = kTilePositions / kGroupPositions;

// Where a tile's groups of positions lie, if none is parted: the block of each, counted in rows of
// one KV head, and its number in the block.
struct TileGroups {
  size_t block[kGroups];
  size_t in_block[kGroups];

  // The row that a KV head's block begins with, in the pages.
  size_t BlockRow(const KvPages& kv, uint32_t kv_head, int g) const {
    return block[g] * kv.kv_heads + size_t{kv_head} * kv.block_size;
  }
};

// Groups without a position in `wanted` are those of its first one. REQUIRES: `wanted` is not
// empty.
inline TileGroups FindGroups(const KvPages& kv, const int32_t* table, PositionRange wanted) {
  const auto block_size = static_cast<int32_t>(kv.block_size);
  const int32_t tile = wanted.begin / kTilePositions * kTilePositions;
  TileGroups found;
  for (int g = 0; g < kGroups; ++g) {
    int32_t pos = tile + g * kGroupPositions;
    if (pos + kGroupPositions <= wanted.begin || pos >= wanted.end)
      pos = wanted.begin / kGroupPositions * kGroupPositions;
    found.block[g] = static_cast<size_t>(table[pos / block_size]) * kv.block_size;
    found.in_block[g] = static_cast<size_t>(pos % block_size / kGroupPositions);
  }
  return found;
}

// The rows of a tile's groups, also those outside `wanted`, which may never have been written.
inline void FindGroupRows(const KvPages& kv, const TileGroups& groups, uint32_t kv_head,
                          const void* pages, size_t row_bytes, const void* rows[kTilePositions]) {
  for (int g = 0; g < kGroups; ++g) {
    const size_t first = groups.BlockRow(kv, kv_head, g) + groups.in_block[g] * kGroupPositions;
    const auto* row = static_cast<const unsigned char*>(pages) + first * row_bytes;
    for (int i = 0; i < kGroupPositions; ++i, row += row_bytes) rows[g * kGroupPositions + i] = row;
  }
}

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA

#endif  // TANDEM_KERNELS_CPU_ATTENTION_PAGES_H_
