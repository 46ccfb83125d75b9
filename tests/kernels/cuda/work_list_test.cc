// Attention's work list shared out among the blocks of a GPU with 132 multiprocessors: every tile
// of positions is computed once for every row tile that sees it, and no block has much more of them
// than the others, whatever the contexts.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/kernels/cuda/work_list_kernels.h"

namespace tandem::kernels::cuda {
namespace {

// Sequences that decode one token, at these contexts.
WorkListCase Decode(std::vector<int32_t> contexts) {
  WorkListCase c;
  c.query_lens.assign(contexts.size(), 1);
  c.context_lens = std::move(contexts);
  return c;
}

// One long context among short ones.
std::vector<int32_t> OneLong(int32_t size, int32_t among, int32_t others) {
  std::vector<int32_t> contexts(static_cast<size_t>(among), others);
  contexts[contexts.size() / 2] = size;
  return contexts;
}

int32_t Visible(int32_t context, uint32_t window) {
  return window == 0 ? context : std::min(context, static_cast<int32_t>(window));
}

// How often a sequence's row tiles see a tile of positions, by a loop over rows.
uint32_t Seen(const WorkListCase& c, size_t seq, uint32_t kv_head, uint32_t tile) {
  const uint32_t first = (c.first_kv_head() + kv_head) * c.heads_per_kv;
  const uint32_t heads =
      std::min(first + c.heads_per_kv, c.first_head + c.heads) - std::max(first, c.first_head);
  const auto tokens = static_cast<uint32_t>(c.query_lens[seq]);
  const uint32_t group = std::min(c.heads, c.heads_per_kv);
  if (tokens * group <= c.rows_above || tokens * group > c.rows_upto) return 0;
  uint32_t seen = 0;
  for (uint32_t row = 0; row < tokens * heads; row += c.tile_rows) {
    const uint32_t last_row = std::min(row + c.tile_rows, tokens * heads) - 1;
    const int32_t past = c.context_lens[seq] - c.query_lens[seq];
    const int32_t first_end = past + static_cast<int32_t>(row / heads) + 1;
    const int32_t end = std::max(past + static_cast<int32_t>(last_row / heads) + 1, 0);
    const int32_t begin = std::max(first_end - Visible(first_end, c.window), 0);
    const auto positions = static_cast<int32_t>(c.tile_positions);
    const int32_t first_tile = begin / positions;
    const int32_t end_tile = std::max((end + positions - 1) / positions, first_tile + 1);
    const auto at = static_cast<int32_t>(tile);
    if (at >= first_tile && at < end_tile) ++seen;
  }
  return seen;
}

void ExpectEveryTileOnce(const WorkListCase& c, const WorkShares& shares) {
  ASSERT_EQ(shares.error, "");
  for (size_t seq = 0; seq < c.query_lens.size(); ++seq) {
    for (uint32_t head = 0; head < c.kv_heads(); ++head) {
      for (uint32_t tile = 0; tile < shares.max_tiles; ++tile) {
        ASSERT_EQ(shares.given[(seq * c.kv_heads() + head) * shares.max_tiles + tile],
                  Seen(c, seq, head, tile))
            << "sequence " << seq << ", KV head " << head << ", tile " << tile;
      }
    }
  }
}

// The most tiles of a block, over the mean.
double Imbalance(const WorkShares& shares) {
  const std::vector<uint32_t>& tiles = shares.tiles_of_block;
  const double sum = std::accumulate(tiles.begin(), tiles.end(), 0.0);
  return *std::max_element(tiles.begin(), tiles.end()) * static_cast<double>(tiles.size()) / sum;
}

TEST(WorkListTest, OneLongContextAmongShortOnesIsSpread) {
  const WorkListCase c = Decode(OneLong(32768, 64, 1024));
  const WorkShares shares = ShareOut(c);
  ExpectEveryTileOnce(c, shares);
  EXPECT_EQ(shares.tiles_of_block.size(), 264u);
  EXPECT_LE(Imbalance(shares), 1.2);
}

TEST(WorkListTest, MixesOfContextsAreBalanced) {
  std::vector<int32_t> all_lengths;
  for (int32_t i = 0; i < 96; ++i) all_lengths.push_back(1 + i * i * 2 % 9001);
  for (const auto& contexts : {OneLong(131072, 8, 300), OneLong(32768, 200, 257), all_lengths,
                               std::vector<int32_t>(40, 4096), std::vector<int32_t>(1, 131072)}) {
    WorkListCase c = Decode(contexts);
    for (const uint32_t heads_per_kv : {4u, 8u}) {
      c.heads_per_kv = heads_per_kv;
      const WorkShares shares = ShareOut(c);
      ExpectEveryTileOnce(c, shares);
      EXPECT_LE(Imbalance(shares), 1.2) << contexts.size() << " contexts, " << heads_per_kv;
    }
  }
}

TEST(WorkListTest, ClassesOfAMixedStepShareItsSequences) {
  WorkListCase c;
  c.query_lens = {1, 1, 300, 0, 6, 1, 8, 40, 1};
  c.context_lens = {700, 1, 2300, 50, 900, 4100, 8, 5000, 0};
  for (const uint32_t window : {0u, 333u}) {
    c.window = window;
    ExpectEveryTileOnce(c, ShareOut(c));
    WorkListCase some = c;
    some.rows_above = 16;
    some.rows_upto = some.tile_rows = 32;
    ExpectEveryTileOnce(some, ShareOut(some));
    WorkListCase many = c;
    many.rows_above = 32;
    many.rows_upto = 0xffffffffu;
    many.tile_rows = 64;
    many.piece_positions = 2048;
    ExpectEveryTileOnce(many, ShareOut(many));
  }
}

TEST(WorkListTest, PartsOfGroups) {
  WorkListCase c;
  c.heads = 5;
  c.first_head = 3;  // one head, a group, and three heads
  c.heads_per_kv = 4;
  c.query_lens = {1, 9, 33, 1};
  c.context_lens = {500, 1000, 33, 140};
  c.rows_upto = 0xffffffffu;
  ExpectEveryTileOnce(c, ShareOut(c));
}

// What partial results take grows with the logarithm of contexts, not with sequences.
TEST(WorkListTest, ScratchDoesNotGrowWithTheBatch) {
  const uint32_t few = ShareOut(Decode(std::vector<int32_t>(64, 1024))).scratch_bytes;
  EXPECT_EQ(ShareOut(Decode(std::vector<int32_t>(256, 1024))).scratch_bytes, few);
  EXPECT_LE(ShareOut(Decode(std::vector<int32_t>(2, 131072))).scratch_bytes, 4 * few);
}

}  // namespace
}  // namespace tandem::kernels::cuda
