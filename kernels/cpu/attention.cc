// Attention over pages, compiled once per instruction set. attention_plan.h divides the work,
// attention_tile.h multiplies. Online softmax over tiles: Milakov and Gimelshein, 2018; Dao et al.,
// FlashAttention, 2022.
#include "kernels/cpu/attention.h"

#include "kernels/cpu/attention_tile.h"
#include "kernels/cpu/vec.h"

namespace tandem::kernels::cpu::TANDEM_CPU_ISA {
namespace {

// The softmax state of a row over some positions: sums of exp(score - largest) * V, then (from
// `columns` on) the largest score and the sum of exp(score - largest). Also the form of a partial
// in shared scratch.
struct State {
  float* values;
  uint32_t columns;

  float& largest() const { return values[columns]; }
  float& weight() const { return values[columns + 1]; }

  void Clear() const {
    for (uint32_t c = 0; c < columns; c += kLanes) Store(values + c, Zero());
    largest() = -__builtin_inff();
    weight() = 0;
  }
  void Scale(float factor) const {
    if (factor == 1) return;
    const Vec by = Set1(factor);
    for (uint32_t c = 0; c < columns; c += kLanes) Store(values + c, Load(values + c) * by);
  }
};

// Merges `part` into `total`; the first split is copied.
void MergeSplit(const State& total, const State& part, bool first) {
  if (first) {
    __builtin_memcpy(total.values, part.values, (total.columns + kPadding) * sizeof(float));
    return;
  }
  const float a = total.largest(), b = part.largest();
  const float largest = a < b ? b : a;
  const float scale_total = ExpOne(a - largest), scale_part = ExpOne(b - largest);
  const Vec by_total = Set1(scale_total), by_part = Set1(scale_part);
  for (uint32_t c = 0; c < total.columns; c += kLanes) {
    Store(total.values + c, Fma(Load(part.values + c), by_part, Load(total.values + c) * by_total));
  }
  total.largest() = largest;
  total.weight() = total.weight() * scale_total + part.weight() * scale_part;
}

// The row's output. A sink is one more score in the softmax, without a value; it is added here,
// once, after all splits are merged.
void WriteRow(const State& state, const float* sink, float* out, uint32_t dim) {
  const bool padding = state.weight() == 0;  // attended to no position: zeros
  float scale = padding ? 0 : 1.0f / state.weight();
  if (sink != nullptr && !padding) {
    const float largest = state.largest() < *sink ? *sink : state.largest();
    const float rescale = ExpOne(state.largest() - largest);
    scale = rescale / (state.weight() * rescale + ExpOne(*sink - largest));
  }
  const Vec by = Set1(scale);
  for (uint32_t c = 0; c < dim; c += kLanes) {
    const int left = static_cast<int>(dim - c);
    const Vec value = Load(state.values + c) * by;
    if (left >= kLanes) {
      Store(out + c, value);
    } else {
      StorePartial(out + c, value, left);
    }
  }
}

// Scores of one tile become cap * tanh(scale * score / cap).
void CapScores(float* scores, float scale, float cap) {
  const Vec in = Set1(scale / cap), out = Set1(cap);
  for (int32_t i = 0; i < kTilePositions; i += kLanes)
    Store(scores + i, Tanh(Load(scores + i) * in) * out);
}

// Online-softmax update: scores of one tile become weights relative to the row's new largest score,
// zero outside [begin, end); the state is rescaled to it.
void Weigh(float* scores, int32_t begin, int32_t end, float scale, const State& state) {
  constexpr int kVecs = kTilePositions / kLanes;
  const Vec by = Set1(scale), never = Set1(-__builtin_inff());
  Vec score[kVecs];
  Vec largest = never;
  for (int c = 0; c < kVecs; ++c) {
    const Mask seen = LanesIn(begin - c * kLanes, end - c * kLanes);
    score[c] = Select(seen, Load(scores + c * kLanes) * by, never);
    largest = Max(largest, score[c]);
  }
  const float before = state.largest();
  const float in_tile = ReduceMax(largest);
  const float now = before < in_tile ? in_tile : before;
  Vec sum = Zero();
  for (int c = 0; c < kVecs; ++c) {
    const Vec weight = Exp(score[c] - Set1(now));
    Store(scores + c * kLanes, weight);
    sum = sum + weight;
  }
  const float rescale = ExpOne(before - now);
  state.Scale(rescale);
  state.largest() = now;
  state.weight() = state.weight() * rescale + ReduceAdd(sum);
}

const float* SinkOf(const AttentionParams& p, uint32_t head) {
  return p.sinks == nullptr ? nullptr : p.sinks + head;
}

int32_t LargerOf(int32_t a, int32_t b) { return a < b ? b : a; }
int32_t SmallerOf(int32_t a, int32_t b) { return a < b ? a : b; }

// One item from its first tile to its last. In thread scratch:
//   queries (64, padded head_dim), K of a tile (padded head_dim, 64), V of a tile (64, columns) or
//   if pages are latent, its K rows, which contain V (64, padded head_dim),
//   states of the current split (64, columns + 16), states of all splits so far (64, columns + 16).
class ItemRunner {
 public:
  ItemRunner(const AttentionTask& task, const AttentionItem& item, const host::TaskContext& context)
      : task_(task),
        p_(task.params),
        item_(item),
        shared_(context.shared_scratch),
        table_(p_.block_tables + static_cast<size_t>(p_.table_rows[item.seq]) * p_.table_stride),
        rows_(item.tokens * item.heads),
        query_stride_(Padded(p_.pages.head_dim)),
        columns_(Padded(p_.pages.value_dim)),
        v_stride_(VRowStride(p_.pages)),
        state_stride_(columns_ + kPadding),
        queries_(reinterpret_cast<float*>(context.thread_scratch)),
        k_(queries_ + size_t{kItemRows} * query_stride_),
        v_(k_ + size_t{query_stride_} * kTilePositions),
        split_states_(v_ + size_t{v_stride_} * kTilePositions),
        total_states_(split_states_ + size_t{kItemRows} * state_stride_) {
    for (uint32_t r = 0; r < rows_; ++r) {
      visible_[r] = VisibleTo(p_, item.seq, item.token_begin + r / item.heads);
    }
  }

  void Run() {
    CopyQueries();
    // Both bounds rise with the token, so the first row begins first and the last ends last.
    const PositionRange all{visible_[0].begin, visible_[rows_ - 1].end};
    if (item_.split != kAllSplits) {
      RunSplit(item_.split, all);
      for (uint32_t r = 0; r < rows_; ++r) {
        const State kept{PartialOf(task_, shared_, item_.partial + r), columns_};
        MergeSplit(kept, SplitState(r), true);
      }
      return;
    }
    const int32_t first = all.begin / kSplitPositions, last = (all.end - 1) / kSplitPositions;
    for (int32_t split = first; split <= last; ++split) {
      RunSplit(split, all);
      if (first != last) MergeRows(split);
    }
    for (uint32_t r = 0; r < rows_; ++r) {
      WriteRow(first == last ? SplitState(r) : TotalState(r),
               SinkOf(p_, item_.head_begin + r % item_.heads), Out(r), p_.pages.value_dim);
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
      __builtin_memcpy(queries_ + size_t{r} * query_stride_, p_.q + RowOffset(r, dim),
                       dim * sizeof(float));
    }
  }

  void MergeRows(int32_t split) {
    for (uint32_t r = 0; r < rows_; ++r) {
      const int32_t begin = split * kSplitPositions;
      if (visible_[r].end <= begin || visible_[r].begin >= begin + kSplitPositions) continue;
      MergeSplit(TotalState(r), SplitState(r), visible_[r].begin / kSplitPositions == split);
    }
  }

  void RunSplit(int32_t split, PositionRange all) {
    for (uint32_t r = 0; r < rows_; ++r) SplitState(r).Clear();
    const int32_t begin =
        LargerOf(split * kSplitPositions, all.begin / kTilePositions * kTilePositions);
    const int32_t end = SmallerOf((split + 1) * kSplitPositions, all.end);
    for (int32_t tile = begin; tile < end; tile += kTilePositions) {
      LoadTile(tile, {LargerOf(tile, all.begin), SmallerOf(tile + kTilePositions, all.end)});
      uint32_t r = 0;
      for (; r + kBlockRows <= rows_; r += kBlockRows) RunBlock<kBlockRows>(tile, r);
      switch (rows_ - r) {
        case 5:
          RunBlock<5>(tile, r);
          break;
        case 4:
          RunBlock<4>(tile, r);
          break;
        case 3:
          RunBlock<3>(tile, r);
          break;
        case 2:
          RunBlock<2>(tile, r);
          break;
        case 1:
          RunBlock<1>(tile, r);
          break;
        default:
          break;
      }
    }
  }

  void LoadTile(int32_t tile, PositionRange wanted) {
    const KvPages& kv = p_.pages;
    const void* rows[kTilePositions];
    FindRows(p_, table_, item_.kv_head, tile, wanted, kv.k, kv.head_dim, rows);
    if (kv.latent) return LoadLatentTile(rows);
    WithRows(kv.type, [&](auto type) { UnpackTransposed<decltype(type)>(rows, kv.head_dim, k_); });
    FindRows(p_, table_, item_.kv_head, tile, wanted, kv.v, kv.value_dim, rows);
    WithRows(kv.type, [&](auto type) { Unpack<decltype(type)>(rows, kv.value_dim, v_); });
  }

  // Unpacks every row once; K and V are both built from the floats.
  void LoadLatentTile(const void* const rows[kTilePositions]) {
    const uint32_t dim = p_.pages.head_dim;
    WithRows(p_.pages.type, [&](auto type) { Unpack<decltype(type)>(rows, dim, v_); });
    const void* floats[kTilePositions];
    for (uint32_t i = 0; i < kTilePositions; ++i)
      floats[i] = rows[i] == nullptr ? nullptr : v_ + i * v_stride_;
    UnpackTransposed<F32Rows>(floats, dim, k_);
  }

  // R rows from `first` on with the loaded tile.
  template <int R>
  void RunBlock(int32_t tile, uint32_t first) {
    alignas(64) float scores[R * kTilePositions];
    int32_t begin[R], end[R];  // the part of the tile visible to each row
    int32_t common_begin = 0, common_end = kTilePositions;
    bool any = false;
    for (int r = 0; r < R; ++r) {
      const PositionRange& seen = visible_[first + static_cast<uint32_t>(r)];
      begin[r] = LargerOf(seen.begin - tile, 0);
      end[r] = SmallerOf(seen.end - tile, kTilePositions);
      any |= begin[r] < end[r];
      common_begin = LargerOf(common_begin, begin[r]);
      common_end = SmallerOf(common_end, end[r]);
    }
    if (!any) return;
    ScoreRows<R>(queries_ + size_t{first} * query_stride_, query_stride_, p_.pages.head_dim, k_,
                 scores);
    for (int r = 0; r < R; ++r) {
      if (begin[r] >= end[r]) continue;
      float* const row = scores + r * kTilePositions;
      const bool capped = p_.softcap != 0;
      if (capped) CapScores(row, p_.scale, p_.softcap);
      Weigh(row, begin[r], end[r], capped ? 1.0f : p_.scale,
            SplitState(first + static_cast<uint32_t>(r)));
    }
    // Positions visible to all rows are processed together, the others row by row before and after:
    // each row adds in order, and no row reads a masked value.
    if (common_begin >= common_end) common_begin = common_end = kTilePositions;
    for (int r = 0; r < R; ++r) MixRow(scores, r, first, begin[r], SmallerOf(end[r], common_begin));
    if (common_begin < common_end) {
      MixRows<R>(scores, common_begin, common_end, v_, v_stride_, columns_,
                 SplitState(first).values, state_stride_);
      for (int r = 0; r < R; ++r) MixRow(scores, r, first, common_end, end[r]);
    }
  }

  void MixRow(const float* scores, int r, uint32_t first, int32_t begin, int32_t end) {
    if (begin >= end) return;
    MixRows<1>(scores + r * kTilePositions, begin, end, v_, v_stride_, columns_,
               SplitState(first + static_cast<uint32_t>(r)).values, state_stride_);
  }

  const AttentionTask& task_;
  const AttentionParams& p_;
  const AttentionItem& item_;
  std::byte* const shared_;
  const int32_t* const table_;
  const uint32_t rows_;
  const uint32_t query_stride_;
  const uint32_t columns_;
  const uint32_t v_stride_;
  const uint32_t state_stride_;
  float* const queries_;
  float* const k_;
  float* const v_;
  float* const split_states_;
  float* const total_states_;
  PositionRange visible_[kItemRows];
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
    WriteRow(total, SinkOf(p, merge.head_begin + h), p.out + row * p.pages.value_dim,
             p.pages.value_dim);
  }
}

}  // namespace

void Attend(const AttentionTask& task, const host::TaskContext& context) {
  AttentionPlan* const plan = PlanOf(context.shared_scratch);
  const AttentionItem* const items = ItemsOf(task, context.shared_scratch);
  while (true) {
    const uint32_t i = __atomic_fetch_add(&plan->next_item, 1, __ATOMIC_RELAXED);
    if (i >= plan->num_items) return;
    ItemRunner(task, items[i], context).Run();
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

}  // namespace tandem::kernels::cpu::TANDEM_CPU_ISA
