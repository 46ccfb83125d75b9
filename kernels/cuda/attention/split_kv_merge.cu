// Merges the partial results of row tiles that several blocks have shared, and writes the output;
// or rounds it to groups, then that of all row tiles.
//
// Floor: reads value_dim + 2 floats per query row, head and node that a block has left, at most two
// per level of the tree and block, and writes value_dim; of rows to be rounded that a block has had
// alone value_dim; groups of 32 as bytes are 1.5 per value instead of 4.
//
// A block has every eighth row of the row tile that begins in a share and does not end there, and,
// where rows are rounded, of those that begin and end there; shares without one cost their blocks
// the look at the work list.
#include "kernels/cuda/attention/partials.h"
#include "kernels/cuda/device/quantize_group.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kThreads = 128;
constexpr uint32_t kRowBlocks = 8;
// Nodes whose loads are started together.
constexpr uint32_t kAhead = 4;

// A node as a block has left it.
struct Node {
  uint32_t slot = 0;
  uint32_t last = 0;  // piece
  uint32_t level = 0;
};

// The nodes of all runs of a row tile, in order.
class NodeCursor {
 public:
  __device__ NodeCursor(const AttentionArgs& a, const WorkList& list, const WorkItem& item,
                        const RowTile& tile, uint32_t share)
      : a_(a),
        list_(list),
        item_(item),
        tile_(tile),
        share_(share),
        piece_(tile.first_kv_tile / a.tile.piece_tiles()),
        end_(piece_),
        first_(piece_) {}

  // False: there are no more.
  __device__ bool Next(Node& node) {
    while (piece_ == end_) {
      if (run_.end == tile_.end_kv_tile) return false;
      StartRun();
    }
    const PieceTree tree = {first_, first_};
    node.level = tree.LevelAt(piece_, end_);
    piece_ = PieceTree::NodeEnd(piece_, node.level);
    node.last = piece_ - 1;
    node.slot = slot_++;
    return true;
  }

 private:
  __device__ void StartRun() {
    run_ = RunOf(a_, tile_, item_.begin, list_.ShareBegin(share_), list_.ShareBegin(share_ + 1));
    slot_ = FirstSlot(a_, tile_, run_, share_);
    ++share_;
    const uint32_t each = a_.tile.piece_tiles();
    if (run_.begin < run_.end) end_ = (run_.end + each - 1) / each;
  }

  const AttentionArgs& a_;
  const WorkList& list_;
  const WorkItem& item_;
  const RowTile& tile_;
  uint32_t share_;
  uint32_t slot_ = 0;
  Run run_ = {0, 0};
  uint32_t piece_;  // the next one
  uint32_t end_;    // of the run
  const uint32_t first_;
};

// This thread's stack of nodes: a column's sum and the row's state of each.
class ColumnStack {
 public:
  __device__ ColumnStack(const AttentionArgs& a, SharedArena& arena)
      : sums_(arena.Take<float>(a.head_slots * kThreads)),
        states_(arena.Take<float2>(a.head_slots * kThreads)) {}
  static size_t SharedBytesOf(const AttentionArgs& a) {
    return SharedBytes<float>(a.head_slots * kThreads) +
           SharedBytes<float2>(a.head_slots * kThreads);
  }

  __device__ bool empty() const { return size_ == 0; }
  __device__ void Push(float sum, const SoftmaxState& state) {
    const uint32_t at = size_++ * kThreads + threadIdx.x;
    sums_[at] = sum;
    states_[at] = make_float2(state.largest, state.sum);
  }
  __device__ void Pop(float& sum, SoftmaxState& state) {
    const uint32_t at = --size_ * kThreads + threadIdx.x;
    sum = sums_[at];
    const float2 two = states_[at];
    state = {.largest = two.x, .sum = two.y};
  }
  // Merges a node with the one on top, to its left.
  __device__ void PopInto(float& sum, SoftmaxState& state) {
    float left_sum;
    SoftmaxState left;
    Pop(left_sum, left);
    sum = MergeStates(left, state).Sum(left_sum, sum);
  }

 private:
  const SharedArray<float> sums_;
  const SharedArray<float2> states_;
  uint32_t size_ = 0;
};

// A value of the output in `column` of a row, which is rounded together with those of the other
// lanes of the warp: they have the columns of a group.
__device__ void RoundValue(const AttentionArgs& a, const RowTile& tile, uint32_t row,
                           uint32_t column, float value) {
  const uint32_t group = (tile.Head(row) * a.p.pages.value_dim + column) / 32;
  QuantizeGroupOfWarp(value, a.groups.Group(tile.Token(row), group));
}

// One column of a row.
__device__ void MergeColumn(const AttentionArgs& a, const RowTile& tile, NodeCursor nodes,
                            ColumnStack& stack, uint32_t row, uint32_t column) {
  const uint32_t first = tile.first_kv_tile / a.tile.piece_tiles();
  const PieceTree tree = {first, first};
  bool more = true;
  while (more) {
    Node node[kAhead];
    float sums[kAhead];
    SoftmaxState states[kAhead];
    uint32_t count = 0;
#pragma unroll
    for (uint32_t i = 0; i < kAhead; ++i) {
      more = more && nodes.Next(node[i]);
      if (!more) continue;
      const PartialRow part(a, node[i].slot, row);
      sums[i] = part.value(column);
      states[i] = part.state();
      count = i + 1;
    }
#pragma unroll
    for (uint32_t i = 0; i < kAhead; ++i) {
      if (i >= count) continue;
      for (uint32_t n = tree.Merges(node[i].last, node[i].level); n > 0; --n)
        stack.PopInto(sums[i], states[i]);
      stack.Push(sums[i], states[i]);
    }
  }
  float sum;
  SoftmaxState state;
  stack.Pop(sum, state);
  while (!stack.empty()) stack.PopInto(sum, state);
  const RowOut out(a, tile, row, state);
  if (a.rounds) {
    RoundValue(a, tile, row, column, out.Value(sum));
  } else {
    out.Write(column, sum);
  }
}

// use(row, column), of what this thread has of a row tile.
template <typename Use>
__device__ void ForMyColumns(const AttentionArgs& a, const RowTile& tile, Use use) {
  for (uint32_t row = blockIdx.y; row < tile.rows; row += gridDim.y) {
    for (uint32_t column = threadIdx.x; column < a.p.pages.value_dim; column += kThreads)
      use(row, column);
  }
}

// Four blocks: ptxas would give it 64 registers, which spill.
__global__ void __launch_bounds__(kThreads, 4) AttentionMergeKernel(const AttentionArgs a) {
  SharedArena arena;
  const WorkList list(a, arena);
  ColumnStack stack(a, arena);
  const uint32_t begin = list.ShareBegin(blockIdx.x), end = list.ShareBegin(blockIdx.x + 1);
  if (begin == end) return;  // the whole block
  // Of the row tiles that begin in the share only the last one may not end there.
  WorkItem item = list.Find(a.rounds ? begin : end - 1);
  while (true) {
    const RowTile tile = TileOf(a, item);
    const bool begins = item.begin >= begin;
    const bool ends = PieceFrom(a, tile, end - item.begin) == tile.end_kv_tile;
    if (begins && !ends) {
      const NodeCursor nodes(a, list, item, tile, blockIdx.x);
      ForMyColumns(a, tile, [&](uint32_t row, uint32_t column) {
        MergeColumn(a, tile, nodes, stack, row, column);
      });
    } else if (begins && a.rounds) {
      ForMyColumns(a, tile, [&](uint32_t row, uint32_t column) {
        RoundValue(a, tile, row, column, OutputOf(a, tile, row)[column]);
      });
    }
    if (item.begin + tile.kv_tiles() >= end) return;
    item = list.Next(item, tile.kv_tiles());
  }
}

}  // namespace

void EncodeAttentionMerge(Stream& stream, const AttentionArgs& args) {
  const bool merges = args.head_slots > 0 && args.shares > 1;
  if (!merges && !args.rounds) return;
  const uint32_t rows = args.slot_rows < kRowBlocks ? args.slot_rows : kRowBlocks;
  stream.Launch("attention_merge", &AttentionMergeKernel, dim3(args.shares, rows), kThreads,
                WorkList::kSharedBytes + ColumnStack::SharedBytesOf(args), args);
}

}  // namespace tandem::kernels::cuda
