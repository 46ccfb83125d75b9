// Merges the partial results of row tiles that several blocks have shared, and writes the output;
// or rounds it to BF16 or to groups, then that of all row tiles.
//
// Floor: reads value_dim + 2 floats per query row, head and node that a block has left, at most two
// per level of the tree and block, and writes value_dim; of rows to be rounded that a block has had
// alone value_dim; in BF16 2 bytes per value are written instead of 4, in groups of 32 1.5.
//
// A block has some rows of the row tile that begins in a share and does not end there, and, where
// rows are rounded, of those that begin and end there; shares without one cost their blocks a look
// at what the attention kernel has left about them (ShareRecord).
//
// A row is a chain of few operations, so its time is that of loads that wait for each other, and
// there is one round of them per kChunk * groups pieces: a group of threads, one per column, merges
// the nodes of a subtree of kChunk pieces, and the first group then what the groups have.
#include <algorithm>

#include "kernels/cuda/attention/partials.h"
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/device/quantize_group.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kColumns = 128;  // threads of a group
constexpr uint32_t kMostGroups = 4;
// Blocks of a launch per multiprocessor, at most: most of them may have nothing to do.
constexpr uint32_t kMostBlocks = 16;
// Pieces of a subtree, whose loads are started together.
constexpr uint32_t kChunkLevel = 3;
constexpr uint32_t kChunk = 1u << kChunkLevel;

// A row tile that several blocks have shared.
struct SharedTile {
  __device__ SharedTile(const AttentionArgs& a, const ShareBounds& bounds, const Assignment& of)
      : bounds(bounds),
        item_begin(of.item.begin),
        tile(of.tile),
        first(tile.first_kv_tile >> a.piece_shift),
        end(a.PiecesUpTo(tile.end_kv_tile)) {}

  const ShareBounds bounds;
  const uint32_t item_begin;
  const RowTile tile;
  const uint32_t first;  // pieces [first, end)
  const uint32_t end;
};

// A node as a block has left it.
struct Node {
  bool begins = false;
  uint32_t slot = 0;
  uint32_t level = 0;
};

// The node that begins with a piece, if one does.
__device__ Node NodeAt(const AttentionArgs& a, const SharedTile& of, uint32_t piece) {
  if (piece < of.first || piece >= of.end) return {};
  const uint32_t kv_tile = max(piece << a.piece_shift, of.tile.first_kv_tile);
  const uint32_t share = of.bounds.ShareOf(of.item_begin + kv_tile - of.tile.first_kv_tile);
  const Run run =
      RunOf(a, of.tile, of.item_begin, of.bounds.Begin(share), of.bounds.Begin(share + 1));
  const PieceTree tree = {of.first, of.first};
  const uint32_t run_end = a.PiecesUpTo(run.end);
  Node node = {.slot = FirstSlot(a, of.tile, run, share)};
  for (uint32_t at = run.begin >> a.piece_shift; at <= piece; ++node.slot) {
    node.level = tree.LevelAt(at, run_end);
    node.begins = at == piece;
    if (node.begins) break;
    at = PieceTree::NodeEnd(at, node.level);
  }
  return node;
}

// The nodes of a subtree, a lane each; all rows and columns have the same.
struct Nodes {
  uint32_t begin = 0xffffffffu;  // piece
  Node mine;

  __device__ void Find(const AttentionArgs& a, const SharedTile& of, uint32_t piece) {
    if (piece == begin) return;
    begin = piece;
    mine = NodeAt(a, of, begin + threadIdx.x % kWarp % kChunk);
  }
};

// A column's sum and the row's state.
struct Part {
  float sum = 0;
  SoftmaxState state;

  // Merges with the part to the left.
  __device__ void MergeWith(const Part& left) {
    sum = MergeStates(left.state, state).Sum(left.sum, sum);
  }
};

// The merged nodes of a subtree: all that begin in it.
struct Subtree {
  Part part;
  uint32_t last = 0;   // piece
  uint32_t level = 0;  // of the whole subtree, if its end is not that of the row tile
  uint32_t exists = 0;
};

// Of the nodes that begin in a subtree. All lanes of the warp call it.
__device__ Subtree MergeSubtree(const AttentionArgs& a, const Nodes& nodes, uint32_t row,
                                uint32_t column) {
  const Node& mine = nodes.mine;
  uint32_t there = __ballot_sync(kAllLanes, mine.begins) & ((1u << kChunk) - 1);
  Subtree subtree;
  if (there == 0) return subtree;
  Part parts[kChunk];
#pragma unroll
  for (uint32_t i = 0; i < kChunk; ++i) {
    const uint32_t slot = __shfl_sync(kAllLanes, mine.slot, static_cast<int>(i));
    if ((there >> i & 1) == 0) continue;
    const PartialRow part(a, slot, row);
    parts[i] = {.sum = column < a.p.pages.value_dim ? part.value(column) : 0.0f,
                .state = part.state()};
  }
  const auto first = static_cast<int>(__ffs(static_cast<int>(there)) - 1);
  const uint32_t level = __shfl_sync(kAllLanes, mine.level, first);
#pragma unroll
  for (uint32_t level_step = 1; level_step < kChunk; level_step *= 2) {
#pragma unroll
    for (uint32_t i = 0; i < kChunk; i += 2 * level_step) {
      const uint32_t right = i + level_step;
      if ((there >> right & 1) == 0) continue;
      if ((there >> i & 1) != 0) parts[right].MergeWith(parts[i]);
      parts[i] = parts[right];
      there = (there | 1u << i) & ~(1u << right);
    }
  }
  subtree.part = parts[0];
  subtree.exists = 1;
  subtree.level = max(level, kChunkLevel);
  subtree.last = PieceTree::NodeEnd(nodes.begin, subtree.level) - 1;
  return subtree;
}

// Subtrees that a group leaves for the first one: a column's sum of each thread; the state, and
// where it is in the tree, from the first.
class Exchange {
 public:
  __device__ Exchange(SharedArena& arena)
      : sums_(arena.Take<float>(2 * blockDim.x)),
        states_(arena.Take<float2>(2 * kMostGroups)),
        places_(arena.Take<uint4>(2 * kMostGroups)) {}
  static size_t SharedBytesOf(uint32_t groups) {
    return SharedBytes<float>(2 * groups * kColumns) + SharedBytes<float2>(2 * kMostGroups) +
           SharedBytes<uint4>(2 * kMostGroups);
  }

  // Read after a barrier, which two calls have between them.
  __device__ void Write(const Subtree& subtree) {
    turn_ ^= 1;
    sums_[turn_ * blockDim.x + threadIdx.x] = subtree.part.sum;
    if (threadIdx.x % kColumns != 0) return;
    const uint32_t at = turn_ * kMostGroups + threadIdx.x / kColumns;
    states_[at] = make_float2(subtree.part.state.largest, subtree.part.state.sum);
    places_[at] = make_uint4(subtree.last, subtree.level, subtree.exists, 0);
  }
  __device__ Subtree Of(uint32_t group) const {
    const float2 state = states_[turn_ * kMostGroups + group];
    const uint4 place = places_[turn_ * kMostGroups + group];
    const float sum = sums_[turn_ * blockDim.x + group * kColumns + threadIdx.x];
    return {.part = {.sum = sum, .state = {.largest = state.x, .sum = state.y}},
            .last = place.x,
            .level = place.y,
            .exists = place.z};
  }

 private:
  const SharedArray<float> sums_;
  const SharedArray<float2> states_;
  const SharedArray<uint4> places_;
  uint32_t turn_ = 0;
};

// This thread's stack of nodes: a column's sum and the row's state of each.
class ColumnStack {
 public:
  __device__ ColumnStack(const AttentionArgs& a, SharedArena& arena)
      : sums_(arena.Take<float>(a.head_slots * kColumns)),
        states_(arena.Take<float2>(a.head_slots * kColumns)) {}
  static size_t SharedBytesOf(const AttentionArgs& a) {
    return SharedBytes<float>(a.head_slots * kColumns) +
           SharedBytes<float2>(a.head_slots * kColumns);
  }

  // A subtree to the right of all others, merged with those that it completes.
  __device__ void Push(const PieceTree& tree, uint32_t end, const Subtree& subtree) {
    Part part = subtree.part;
    const bool complete = subtree.last < end;
    for (uint32_t n = complete ? tree.Merges(subtree.last, subtree.level) : 0; n > 0; --n)
      part.MergeWith(Pop());
    const uint32_t at = size_++ * kColumns + threadIdx.x;
    sums_[at] = part.sum;
    states_[at] = make_float2(part.state.largest, part.state.sum);
  }
  // All of them, merged from the right.
  __device__ Part MergeAll() {
    Part part = Pop();
    while (size_ > 0) part.MergeWith(Pop());
    return part;
  }

 private:
  __device__ Part Pop() {
    const uint32_t at = --size_ * kColumns + threadIdx.x;
    const float2 state = states_[at];
    return {.sum = sums_[at], .state = {.largest = state.x, .sum = state.y}};
  }

  const SharedArray<float> sums_;
  const SharedArray<float2> states_;
  uint32_t size_ = 0;
};

// A value of the output in `column` of a row; in bytes it is rounded together with those of the
// other lanes of the warp: they have the columns of a group.
__device__ void RoundValue(const AttentionArgs& a, const RowTile& tile, uint32_t row,
                           uint32_t column, float value) {
  const uint32_t at = tile.Head(row) * a.p.pages.value_dim + column;
  if (a.rounded.in_bytes) {
    QuantizeGroupOfWarp(value, a.rounded.groups + at / 32);
  } else {
    *a.rounded.bf16.At(tile.Token(row), at) = FloatToBf16(value);
  }
}

// One column of a row, which a thread of each group has.
__device__ void MergeColumn(const AttentionArgs& a, const SharedTile& of, Nodes& nodes,
                            Exchange& exchange, ColumnStack& stack, uint32_t row, uint32_t column) {
  const PieceTree tree = {of.first, of.first};
  const uint32_t group = threadIdx.x / kColumns, groups = blockDim.x / kColumns;
  for (uint32_t chunk = of.first / kChunk; chunk * kChunk < of.end; chunk += groups) {
    nodes.Find(a, of, (chunk + group) * kChunk);
    const Subtree mine = MergeSubtree(a, nodes, row, column);
    if (groups == 1) {
      if (mine.exists != 0) stack.Push(tree, of.end, mine);
      continue;
    }
    exchange.Write(mine);
    __syncthreads();
    if (group != 0) continue;
    for (uint32_t i = 0; i < groups; ++i) {
      const Subtree subtree = i == 0 ? mine : exchange.Of(i);
      if (subtree.exists != 0) stack.Push(tree, of.end, subtree);
    }
  }
  if (group != 0) return;
  const Part whole = stack.MergeAll();
  if (column >= a.p.pages.value_dim) return;
  const RowOut out(a, of.tile, row, whole.state);
  if (a.rounds) {
    RoundValue(a, of.tile, row, column, out.Value(whole.sum));
  } else {
    out.Write(column, whole.sum);
  }
}

__device__ void MergeRows(const AttentionArgs& a, const SharedTile& of, Exchange& exchange,
                          ColumnStack& stack) {
  Nodes nodes;
  for (uint32_t row = blockIdx.y; row < of.tile.rows; row += gridDim.y) {
    for (uint32_t begin = 0; begin < a.p.pages.value_dim; begin += kColumns)
      MergeColumn(a, of, nodes, exchange, stack, row, begin + threadIdx.x % kColumns);
  }
}

// The rows of a tile that a block has had alone.
__device__ void RoundRows(const AttentionArgs& a, const RowTile& tile) {
  const uint32_t group = threadIdx.x / kColumns, groups = blockDim.x / kColumns;
  for (uint32_t row = blockIdx.y * groups + group; row < tile.rows; row += gridDim.y * groups) {
    for (uint32_t column = threadIdx.x % kColumns; column < a.p.pages.value_dim; column += kColumns)
      RoundValue(a, tile, row, column, OutputOf(a, tile, row)[column]);
  }
}

// Those row tiles that begin and end in the share.
__device__ void RoundWholeTiles(const AttentionArgs& a, const ShareRecord& share, uint32_t begin,
                                uint32_t end) {
  for (WorkItem item = share.first; item.begin < end;) {
    const RowTile tile = TileOf(a, item);
    const bool ends = PieceFrom(a, tile, end - item.begin) == tile.end_kv_tile;
    if (item.begin >= begin && ends) RoundRows(a, tile);
    if (item.begin + tile.kv_tiles() >= end) return;
    item = NextItem(a, item, tile.kv_tiles());
  }
}

__global__ void __launch_bounds__(kColumns* kMostGroups, 1)
    AttentionMergeKernel(const AttentionArgs a) {
  FollowEarlierLaunches();
  SharedArena arena;
  Exchange exchange(arena);
  ColumnStack stack(a, arena);
  const ShareRecord& share = a.records[blockIdx.x];
  const ShareBounds bounds(a, share.total);
  const uint32_t begin = bounds.Begin(blockIdx.x), end = bounds.Begin(blockIdx.x + 1);
  if (begin == end) return;  // the whole block
  if (a.rounds) RoundWholeTiles(a, share, begin, end);
  // Of the row tiles that begin in the share only the last one may not end there.
  const Assignment last = share.last;
  if (last.item.begin < begin || last.run.end == last.tile.end_kv_tile) return;
  MergeRows(a, SharedTile(a, bounds, last), exchange, stack);
}

}  // namespace

void EncodeAttentionMerge(Stream& stream, const AttentionArgs& args) {
  const bool merges = args.head_slots > 0 && args.shares > 1;
  if (!merges && !args.rounds) return;
  const auto most = static_cast<uint32_t>(stream.multiprocessors()) * kMostBlocks / args.shares;
  const uint32_t rows = std::clamp(most, 1u, args.slot_rows);
  const uint32_t groups = std::clamp(Blocks(args.pieces, kChunk), 1u, kMostGroups);
  stream.LaunchEarly("attention_merge", &AttentionMergeKernel, dim3(args.shares, rows),
                     kColumns * groups,
                     Exchange::SharedBytesOf(groups) + ColumnStack::SharedBytesOf(args), args);
}

}  // namespace tandem::kernels::cuda
