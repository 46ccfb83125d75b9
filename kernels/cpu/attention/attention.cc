// Attention over pages, compiled once per instruction set: tile by tile, as in FlashAttention (Dao
// et al., 2022). plan.h divides the work, ahead.h reads ahead, pages.h, columns.h and unpack.h find
// and unpack, products.h with tile.h or integer_tile.h multiply blocks of rows.h, softmax.h weighs.
#include "kernels/cpu/attention/ahead.h"
#include "kernels/cpu/attention/columns.h"
#include "kernels/cpu/attention/pages.h"
#include "kernels/cpu/attention/products.h"
#include "kernels/cpu/attention/rows.h"
#include "kernels/cpu/attention/softmax.h"
#include "kernels/cpu/attention/unpack.h"
#include "kernels/cpu/kernels.h"
#if defined(TANDEM_INTEGER_ATTENTION)
#include "kernels/cpu/attention/integer_tile.h"
#else
#include "kernels/cpu/attention/tile.h"
#endif

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {
namespace {

const float* SinkOf(const AttentionParams& p, uint32_t head) {
  return p.sinks == nullptr ? nullptr : p.sinks + head;
}

int32_t LargerOf(int32_t a, int32_t b) { return a < b ? b : a; }
int32_t SmallerOf(int32_t a, int32_t b) { return a < b ? a : b; }

// The part of `range` in the `count` positions from `begin` on.
PositionRange Overlap(PositionRange range, int32_t begin, int32_t count) {
  return {LargerOf(range.begin, begin), SmallerOf(range.end, begin + count)};
}
int32_t TileOf(int32_t pos) { return pos / kTilePositions * kTilePositions; }

const int32_t* TableOf(const AttentionParams& p, const AttentionItem& item) {
  return p.block_tables + static_cast<size_t>(p.table_rows[item.seq]) * p.table_stride;
}

// The positions that some row of the item sees: both bounds rise with the token, so the first row
// begins first and the last ends last.
PositionRange PositionsOf(const AttentionParams& p, const AttentionItem& item) {
  return {VisibleTo(p, item.seq, item.token_begin).begin,
          VisibleTo(p, item.seq, item.token_begin + item.tokens - 1).end};
}

// Rows that read one KV head, at most.
uint32_t GroupRows(const AttentionParams& p, const AttentionItem& item) {
  return item.kv_heads == 1 ? item.tokens * item.heads : p.heads_per_kv;
}
// Whether V, or K in columns, is multiplied in the pages: the rows are one block, which reads it
// once.
bool TakesV(const AttentionParams& p, const AttentionItem& item) {
  return GroupRows(p, item) <= kWideBlockRows && !p.pages.latent && p.pages.value_dim % 32 == 0;
}
bool TakesK(const AttentionParams& p, const AttentionItem& item) {
  return GroupRows(p, item) <= kWideBlockRows && p.pages.k_columns &&
         Products::TakesWords(p.pages.type);
}
// Whether nothing is unpacked: then K and V of one KV head after the other are fetched while what
// comes before them is multiplied; else those of the next tile.
bool Streams(const AttentionParams& p, const AttentionItem& item) {
  return TakesV(p, item) && TakesK(p, item);
}

// Of tiles of which K or V is unpacked, and of those that are multiplied as they lie.
struct TilesAhead {
  ReadAhead unpacked;
  StreamAhead streamed;

  void Clear() {
    unpacked.Clear();
    streamed.Clear();
  }
  void FetchRest() {
    unpacked.FetchRest();
    streamed.FetchRest();
  }
};

// The `wanted` positions of a tile: what of them is read first.
void StartTile(const AttentionTask& task, const AttentionItem& item, PositionRange wanted,
               TilesAhead& ahead) {
  const int32_t* const table = TableOf(task.params, item);
  if (wanted.begin >= wanted.end) {  // padding
    ahead.Clear();
  } else if (Streams(task.params, item)) {
    ahead.streamed.StartK(task, FindGroups(task.params.pages, table, wanted), item.kv_head);
  } else {
    ahead.unpacked.Start(task, table, item, wanted);
  }
}

void StartFirstTile(const AttentionTask& task, const AttentionItem& item, TilesAhead& ahead) {
  PositionRange range = PositionsOf(task.params, item);
  if (item.split != kAllSplits)
    range = Overlap(range, item.split * kSplitPositions, kSplitPositions);
  StartTile(task, item, Overlap(range, TileOf(range.begin), kTilePositions), ahead);
}

// One item from its first tile to its last. In thread scratch:
//   queries (rows, padded head_dim), K of a tile (padded head_dim, 64), V of a tile (64, columns)
//   if it is unpacked, or if pages are latent, its K rows, which contain V (64, padded head_dim),
//   states of the current split (rows, columns + 16), states of all splits so far, likewise.
class ItemRunner {
 public:
  ItemRunner(const AttentionTask& task, const AttentionItem& item, const host::TaskContext& context,
             TilesAhead& ahead)
      : task_(task),
        p_(task.params),
        item_(item),
        shared_(context.shared_scratch),
        ahead_(ahead),
        table_(TableOf(p_, item)),
        rows_(item.tokens * item.heads),
        v_in_pages_(TakesV(p_, item)),
        k_in_pages_(TakesK(p_, item)),
        query_stride_(Padded(p_.pages.head_dim)),
        columns_(Padded(p_.pages.value_dim)),
        v_stride_(VRowStride(p_.pages)),
        state_stride_(columns_ + kPadding),
        queries_(reinterpret_cast<float*>(context.thread_scratch)),
        k_(queries_ + size_t{ItemRows(p_.pages)} * query_stride_),
        v_(k_ + size_t{query_stride_} * kTilePositions),
        split_states_(v_ + size_t{v_stride_} * kTilePositions),
        total_states_(split_states_ + size_t{ItemRows(p_.pages)} * state_stride_) {
    for (uint32_t r = 0; r < rows_; ++r) {
      visible_[r] = VisibleTo(p_, item.seq, item.token_begin + r / item.heads);
    }
  }

  // Calls last_tile() once, before or within the last tile: what it starts is read ahead while the
  // rest is multiplied.
  template <typename LastTile>
  void Run(LastTile last_tile) {
    CopyQueries();
    const PositionRange all = PositionsOf(p_, item_);
    if (all.begin >= all.end) last_tile();  // padding
    if (item_.split != kAllSplits) {
      RunSplit(item_.split, all, last_tile);
      for (uint32_t r = 0; r < rows_; ++r) {
        const State kept{PartialOf(task_, shared_, item_.partial + r), columns_};
        MergeSplit(kept, SplitState(r), true);
      }
      return;
    }
    const int32_t first = all.begin / kSplitPositions, last = (all.end - 1) / kSplitPositions;
    for (int32_t split = first; split <= last; ++split) {
      RunSplit(split, all, last_tile);
      if (first != last) MergeRows(split);
    }
    for (uint32_t r = 0; r < rows_; ++r) {
      const State state = first == last ? SplitState(r) : TotalState(r);
      Products::Order(state.values, columns_);
      WriteRow(state, SinkOf(p_, item_.head_begin + r % item_.heads), Out(r), p_.pages.value_dim);
    }
  }

 private:
  State SplitState(uint32_t r) const {
    return {split_states_ + size_t{r} * state_stride_, columns_};
  }
  State TotalState(uint32_t r) const {
    return {total_states_ + size_t{r} * state_stride_, columns_};
  }

  // Row r of the item in an array of (tokens, heads, dim).
  size_t RowOffset(uint32_t r, uint32_t dim) const {
    const size_t token = item_.token_begin + r / item_.heads;
    const size_t head = item_.head_begin + r % item_.heads;
    return (token * p_.heads + head) * dim;
  }
  float* Out(uint32_t r) const { return p_.out + RowOffset(r, p_.pages.value_dim); }

  void CopyQueries() {
    const uint32_t dim = p_.pages.head_dim;
    for (uint32_t r = 0; r < rows_; ++r) {
      Products::CopyQuery(p_.q + RowOffset(r, dim), dim, queries_ + size_t{r} * query_stride_);
    }
  }

  void MergeRows(int32_t split) {
    for (uint32_t r = 0; r < rows_; ++r) {
      const int32_t begin = split * kSplitPositions;
      if (visible_[r].end <= begin || visible_[r].begin >= begin + kSplitPositions) continue;
      MergeSplit(TotalState(r), SplitState(r), visible_[r].begin / kSplitPositions == split);
    }
  }

  template <typename LastTile>
  void RunSplit(int32_t split, PositionRange all, LastTile last_tile) {
    for (uint32_t r = 0; r < rows_; ++r) SplitState(r).Clear();
    const PositionRange range = Overlap(all, split * kSplitPositions, kSplitPositions);
    const int32_t end = item_.split == kAllSplits ? all.end : range.end;
    for (int32_t tile = TileOf(range.begin); tile < range.end; tile += kTilePositions) {
      const auto next_tile = [&] {
        const int32_t next = tile + kTilePositions;
        if (next >= end) return last_tile();
        StartTile(task_, item_, Overlap(all, next, kTilePositions), ahead_);
      };
      const PositionRange wanted = Overlap(all, tile, kTilePositions);
      if (Streams(p_, item_)) {
        StreamTile(tile, wanted, next_tile);
      } else {
        UnpackTile(tile, wanted, next_tile);
      }
    }
  }

  template <typename NextTile>
  void UnpackTile(int32_t tile, PositionRange wanted, NextTile next_tile) {
    next_tile();
    for (uint32_t g = 0; g < item_.kv_heads; ++g) {
      LoadTile(tile, wanted, item_.kv_head + g);
      RunRows(tile, FirstRow(g), FirstRow(g + 1));
    }
    ahead_.unpacked.FetchRest();
  }

  // A KV head's V is fetched while its K is multiplied, and the next K while its V is.
  template <typename NextTile>
  void StreamTile(int32_t tile, PositionRange wanted, NextTile next_tile) {
    const KvPages& kv = p_.pages;
    const TileGroups groups = FindGroups(kv, table_, wanted);
    for (uint32_t g = 0; g < item_.kv_heads; ++g) {
      const uint32_t kv_head = item_.kv_head + g, first = FirstRow(g);
      keys_ = FindKeyColumns(kv, groups, kv_head, task_.k_row_bytes);
      FindGroupRows(kv, groups, kv_head, kv.v, task_.v_row_bytes, page_rows_);
      ahead_.streamed.StartV(task_, groups, kv_head);
      WithRowCount(FirstRow(g + 1) - first, [&](auto count) {
        RowBlock<count> block;
        const bool any = Score(tile, first, block, ahead_.streamed);
        ahead_.streamed.FetchRest();
        if (g + 1 < item_.kv_heads) {
          ahead_.streamed.StartK(task_, groups, kv_head + 1);
        } else {
          next_tile();
        }
        if (any) AddValues(first, block, ahead_.streamed);
        ahead_.streamed.FetchRest();
      });
    }
  }

  // The first row that reads KV head `g` of the item.
  uint32_t FirstRow(uint32_t g) const {
    if (g == 0) return 0;
    if (g == item_.kv_heads) return rows_;
    return g * p_.heads_per_kv - (p_.first_head + item_.head_begin) % p_.heads_per_kv;
  }

  // Blocks of rows [r, end) as even as they can be.
  void RunRows(int32_t tile, uint32_t r, uint32_t end) {
    const uint32_t blocks =
        GroupRows(p_, item_) <= kWideBlockRows ? 1 : (end - r + kBlockRows - 1) / kBlockRows;
    for (uint32_t block = 0; block < blocks; ++block) {
      const uint32_t rows = (end - r) / (blocks - block);
      WithRowCount(rows, [&](auto count) {
        RowBlock<count> of_rows;
        if (Score(tile, r, of_rows, ahead_.unpacked)) AddValues(r, of_rows, ahead_.unpacked);
      });
      r += rows;
    }
  }

  void LoadTile(int32_t tile, PositionRange wanted, uint32_t kv_head) {
    const KvPages& kv = p_.pages;
    if (kv.k_columns) {
      keys_ = FindKeyColumns(kv, FindGroups(kv, table_, wanted), kv_head, task_.k_row_bytes);
      if (!k_in_pages_) Products::LoadColumns(kv.type, keys_, kv.head_dim, k_);
    } else {
      FindRows(kv, table_, kv_head, tile, wanted, kv.k, task_.k_row_bytes, page_rows_);
      if (kv.latent) return LoadLatentTile(page_rows_);
      Products::LoadK(kv.type, page_rows_, kv.head_dim, k_, ahead_.unpacked);
    }
    FindRows(kv, table_, kv_head, tile, wanted, kv.v, task_.v_row_bytes, page_rows_);
    if (!v_in_pages_) Products::LoadV(kv.type, page_rows_, kv.value_dim, v_, ahead_.unpacked);
  }

  // Unpacks every row once; K and V are both built from the floats.
  void LoadLatentTile(const void* const rows[kTilePositions]) {
    const uint32_t dim = p_.pages.head_dim;
    WithRows(p_.pages.type,
             [&](auto type) { Unpack<decltype(type)>(rows, dim, v_, ahead_.unpacked); });
    const void* floats[kTilePositions];
    for (uint32_t i = 0; i < kTilePositions; ++i) floats[i] = v_ + i * v_stride_;
    UnpackTransposed<F32Rows>(floats, dim, k_, ahead_.unpacked);
  }

  // The weights of R rows from `first` on; false if none sees anything of the tile.
  template <int R, typename Ahead>
  bool Score(int32_t tile, uint32_t first, RowBlock<R>& block, Ahead& ahead) {
    bool any = false;
    for (int r = 0; r < R; ++r) {
      const PositionRange& seen = visible_[first + static_cast<uint32_t>(r)];
      block.begin[r] = LargerOf(seen.begin - tile, 0);
      block.end[r] = SmallerOf(seen.end - tile, kTilePositions);
      any |= block.begin[r] < block.end[r];
    }
    if (!any) return false;
    float* const scores = block.scores;
    Products::WithKeys(p_.pages.type, k_in_pages_ ? &keys_ : nullptr, k_, p_.pages.head_dim,
                       [&](const auto& keys) {
                         ScoreRows<R>(queries_ + size_t{first} * query_stride_, query_stride_,
                                      p_.pages.head_dim, keys, scores, ahead);
                       });
    const bool capped = p_.softcap != 0;
    for (int r = 0; capped && r < R; ++r)
      CapScores(scores + r * kTilePositions, p_.scale, p_.softcap);
    WeighRows<R>(scores, block.begin, block.end, capped ? 1.0f : p_.scale, SplitState(first),
                 state_stride_);
    return true;
  }

  // Adds the weighted V of the loaded tile to the rows' states.
  template <int R, typename Ahead>
  void AddValues(uint32_t first, const RowBlock<R>& block, Ahead& ahead) {
    const auto& [scores, begin, end] = block;
#if defined(TANDEM_INTEGER_ATTENTION)
    MixTile<R>(scores, begin, end, {v_in_pages_ ? page_rows_ : nullptr, v_}, columns_,
               SplitState(first).values, state_stride_, ahead);
#else
    int32_t common_begin = 0, common_end = kTilePositions;
    for (int r = 0; r < R; ++r) {
      common_begin = LargerOf(common_begin, begin[r]);
      common_end = SmallerOf(common_end, end[r]);
    }
    // Words of positions visible to all rows are processed together, the others row by row before
    // and after: each row adds in order, and no row reads a masked value.
    constexpr int32_t kOfWord = Products::kOfWord;
    common_begin = (common_begin + kOfWord - 1) / kOfWord * kOfWord;
    common_end = common_end / kOfWord * kOfWord;
    if (common_begin >= common_end) common_begin = common_end = kTilePositions;
    for (int r = 0; r < R; ++r) {
      Mix<1>(scores + r * kTilePositions, begin[r], SmallerOf(end[r], common_begin),
             first + static_cast<uint32_t>(r), ahead);
    }
    Mix<R>(scores, common_begin, common_end, first, ahead);
    if (common_begin == common_end) return;
    for (int r = 0; r < R; ++r) {
      Mix<1>(scores + r * kTilePositions, common_end, end[r], first + static_cast<uint32_t>(r),
             ahead);
    }
#endif
  }

#if !defined(TANDEM_INTEGER_ATTENTION)
  template <int R, typename Ahead>
  void Mix(const float* weights, int32_t begin, int32_t end, uint32_t first, Ahead& ahead) {
    if (begin >= end) return;
    float* const sums = SplitState(first).values;
    if (!v_in_pages_) {
      return MixRows<R>(weights, begin, end, {v_, v_stride_}, columns_, sums, state_stride_, ahead);
    }
    MixPageRows<R>(weights, begin, end, p_.pages.type, page_rows_, columns_, sums, state_stride_,
                   ahead);
  }
#endif

  const AttentionTask& task_;
  const AttentionParams& p_;
  const AttentionItem& item_;
  std::byte* const shared_;
  TilesAhead& ahead_;
  const int32_t* const table_;
  const uint32_t rows_;
  const bool v_in_pages_;
  const bool k_in_pages_;
  const uint32_t query_stride_;
  const uint32_t columns_;
  const uint32_t v_stride_;
  const uint32_t state_stride_;
  float* const queries_;
  float* const k_;
  float* const v_;
  float* const split_states_;
  float* const total_states_;
  PositionRange visible_[kMaxItemRows];
  const void* page_rows_[kTilePositions];  // of V of the tile
  KeyColumns keys_;                        // of K, if it lies in columns
};

void MergeItem(const AttentionTask& task, const AttentionMerge& merge, std::byte* shared) {
  const AttentionParams& p = task.params;
  const uint32_t columns = Padded(p.pages.value_dim);
  for (uint32_t h = 0; h < merge.heads; ++h) {
    // Accumulates into the first split's partial, which is not read again.
    const State total{PartialOf(task, shared, merge.partial + h), columns};
    for (uint32_t split = 1; split < merge.splits; ++split) {
      MergeSplit(total, {PartialOf(task, shared, merge.partial + split * merge.heads + h), columns},
                 false);
    }
    const size_t row = size_t{merge.token} * p.heads + merge.head_begin + h;
    Products::Order(total.values, columns);
    WriteRow(total, SinkOf(p, merge.head_begin + h), p.out + row * p.pages.value_dim,
             p.pages.value_dim);
  }
}

void Attend(const AttentionTask& task, const host::TaskContext& context) {
  AttentionPlan* const plan = PlanOf(context.shared_scratch);
  const AttentionItem* const items = ItemsOf(task, context.shared_scratch);
  TilesAhead ahead;
  // The next item is taken before this one's last tile is done.
  const auto take = [&] {
    const uint32_t i = __atomic_fetch_add(&plan->next_item, 1, __ATOMIC_RELAXED);
    if (i < plan->num_items) {
      StartFirstTile(task, items[i], ahead);
    } else {
      ahead.Clear();
    }
    return i;
  };
  uint32_t next = take();
  while (next < plan->num_items) {
    const AttentionItem& item = items[next];
    ahead.FetchRest();
    ItemRunner(task, item, context, ahead).Run([&] { next = take(); });
  }
}

void MergeSplits(const AttentionTask& task, const host::TaskContext& context) {
  AttentionPlan* const plan = PlanOf(context.shared_scratch);
  const AttentionMerge* const merges = MergesOf(task, context.shared_scratch);
  while (true) {
    const uint32_t i = __atomic_fetch_add(&plan->next_merge, 1, __ATOMIC_RELAXED);
    if (i >= plan->num_merges) return;
    MergeItem(task, merges[i], context.shared_scratch);
  }
}

}  // namespace

constinit const AttentionKernels kAttention = {.attend = &Attend, .merge_splits = &MergeSplits};

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA
