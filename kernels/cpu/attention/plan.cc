#include "kernels/cpu/attention/plan.h"

#include <algorithm>

#include "common/base/check.h"
#include "kernels/host/op_list.h"

namespace tandem::kernels::cpu {
namespace {

// With fewer items per thread than this, single-token queries are split (split-KV).
constexpr uint32_t kItemsPerThread = 4;
// K and V that a tile of an item with several KV heads reads, at most: they and the next tile's are
// in L2 together.
constexpr size_t kMostTileBytes = size_t{128} << 10;
// Such items are made only if the largest is no more than this part of a thread's share of them.
constexpr size_t kSharesPerThread = 8;
// Upper bound on rows of split states; a token that exceeds it is not split.
constexpr size_t kMaxPartials = 16384;

size_t CeilDiv(size_t a, size_t b) { return (a + b - 1) / b; }

// Calls visit(head_begin, heads, kv_head, kv_heads) for each run of query heads that may form an
// item: those of up to `most` KV heads.
template <typename Visit>
void ForHeadRuns(const AttentionParams& p, uint32_t most, Visit visit) {
  for (uint32_t h = 0; h < p.heads;) {
    const uint32_t global = p.first_head + h, in_group = global % p.heads_per_kv;
    const uint32_t wanted = most == 1 ? std::min(p.heads_per_kv - in_group, kItemHeads)
                                      : most * p.heads_per_kv - in_group;
    const uint32_t heads = std::min(p.heads - h, wanted);
    visit(h, heads, global / p.heads_per_kv - p.first_kv_head,
          (in_group + heads + p.heads_per_kv - 1) / p.heads_per_kv);
    h += heads;
  }
}

size_t CountHeadRuns(const AttentionParams& p, uint32_t most) {
  size_t runs = 0;
  ForHeadRuns(p, most, [&](uint32_t, uint32_t, uint32_t, uint32_t) { ++runs; });
  return runs;
}

// How many KV heads the item of one token may have.
uint32_t MostKvHeads(const AttentionTask& task) {
  const KvPages& pages = task.params.pages;
  if (pages.latent || kTilePositions % pages.block_size != 0) return 1;
  const size_t bytes = kTilePositions * (task.k_row_bytes + task.v_row_bytes);
  const size_t most =
      std::min<size_t>(kMostTileBytes / bytes, ItemRows(pages) / task.params.heads_per_kv);
  return static_cast<uint32_t>(std::max<size_t>(most, 1));
}

size_t MaxSplits(const AttentionParams& p) {
  const size_t all = CeilDiv(p.max_context_len, kSplitPositions);
  return p.window == 0 ? all : std::min(all, size_t{p.window} / kSplitPositions + 2);
}

size_t Align(size_t bytes) { return CeilDiv(bytes, 64) * 64; }

void CheckPages(const KvPages& pages) {
  switch (pages.type) {
    case tensor::Type::kF32:
    case tensor::Type::kF16:
    case tensor::Type::kBF16:
      break;
    case tensor::Type::kQ8_0:
      TANDEM_CHECK(pages.head_dim % 32 == 0 && (pages.latent || pages.value_dim % 32 == 0))
          << "Q8_0 pages with rows of " << pages.head_dim << " and " << pages.value_dim;
      break;
    default:
      TANDEM_CHECK(false) << "KV pages of type " << tensor::Name(pages.type);
  }
  TANDEM_CHECK(!pages.k_columns || TakesKeyColumns(pages))
      << "K in columns of " << pages.head_dim << " values, blocks of " << pages.block_size;
  TANDEM_CHECK(!pages.latent || pages.value_dim <= pages.head_dim)
      << "latent rows of " << pages.head_dim << " with values of " << pages.value_dim;
}

class Planner {
 public:
  Planner(const AttentionTask& task, std::byte* shared)
      : task_(task),
        p_(task.params),
        plan_(*PlanOf(shared)),
        items_(ItemsOf(task, shared)),
        merges_(MergesOf(task, shared)) {
    plan_ = {};
  }

  void Build() {
    const bool cut = CountItems() < size_t{kItemsPerThread} * task_.threads && task_.threads > 1;
    const uint32_t kv_heads = KvHeadsOfItems(cut);
    for (uint32_t seq = 0; seq < p_.num_seqs; ++seq) AddSequence(seq, cut, kv_heads);
  }

 private:
  uint32_t Tokens(uint32_t seq) const {
    return static_cast<uint32_t>(p_.query_offsets[seq + 1] - p_.query_offsets[seq]);
  }

  size_t CountItems() const {
    size_t blocks = 0;
    for (uint32_t seq = 0; seq < p_.num_seqs; ++seq)
      blocks += CeilDiv(Tokens(seq), task_.tokens_per_item);
    return CountHeadRuns(p_, 1) * blocks;
  }
  // How many KV heads the items of single tokens have, by their work: splits times KV heads.
  uint32_t KvHeadsOfItems(bool cut) const {
    uint32_t most = MostKvHeads(task_);
    if (most == 1 || task_.threads == 1) return most;
    size_t all = 0, longest = 0;
    for (uint32_t seq = 0; seq < p_.num_seqs; ++seq) {
      if (Tokens(seq) != 1) continue;
      const auto token = static_cast<uint32_t>(p_.query_offsets[seq]);
      const size_t splits = CountSplits(VisibleTo(p_, seq, token));
      all += splits;
      longest = std::max(longest, cut ? 1 : splits);
    }
    // What finds no room for its states is not cut.
    if (cut && all * p_.heads > task_.max_partials) return 1;
    const size_t shares = kSharesPerThread * task_.threads;
    while (most > 1 && longest * most * shares > all * CountHeadRuns(p_, 1)) most /= 2;
    return most;
  }
  static uint32_t CountSplits(PositionRange range) {
    const int32_t first = range.begin / kSplitPositions;
    return static_cast<uint32_t>((range.end - 1) / kSplitPositions - first + 1);
  }

  // The last tokens attend to the most positions, so they come first, which balances the threads.
  void AddSequence(uint32_t seq, bool cut, uint32_t most_kv_heads) {
    const auto begin = static_cast<uint32_t>(p_.query_offsets[seq]);
    if (Tokens(seq) != 1) most_kv_heads = 1;
    for (uint32_t end = begin + Tokens(seq); end > begin;) {
      const uint32_t tokens = std::min(end - begin, task_.tokens_per_item);
      end -= tokens;
      ForHeadRuns(p_, most_kv_heads,
                  [&](uint32_t head, uint32_t heads, uint32_t kv_head, uint32_t kv_heads) {
                    const AttentionItem item{seq,     end,      tokens,     head, heads,
                                             kv_head, kv_heads, kAllSplits, 0};
                    if (!cut || !AddSplits(item)) items_[plan_.num_items++] = item;
                  });
    }
  }

  // One item per split; false if there is only one split, more than one token, or no room.
  bool AddSplits(AttentionItem item) {
    const PositionRange range = VisibleTo(p_, item.seq, item.token_begin);
    const int32_t first = range.begin / kSplitPositions;
    const uint32_t splits = CountSplits(range);
    if (item.tokens != 1 || splits < 2 || partials_ + splits * item.heads > task_.max_partials)
      return false;
    merges_[plan_.num_merges++] = {item.token_begin, item.head_begin, item.heads, splits,
                                   partials_};
    for (uint32_t i = 0; i < splits; ++i) {
      item.split = first + static_cast<int32_t>(i);
      item.partial = partials_;
      partials_ += item.heads;
      items_[plan_.num_items++] = item;
    }
    return true;
  }

  const AttentionTask& task_;
  const AttentionParams& p_;
  AttentionPlan& plan_;
  AttentionItem* const items_;
  AttentionMerge* const merges_;
  uint32_t partials_ = 0;
};

}  // namespace

bool TakesKeyColumns(const KvPages& pages) {
  // A layer without K and V has none.
  if (pages.latent || pages.block_size == 0) return false;
  return pages.head_dim % 32 == 0 && pages.block_size % kGroupPositions == 0 &&
         kTilePositions % pages.block_size == 0;
}

size_t AttentionThreadFloats(const AttentionParams& p) {
  const size_t k = Padded(p.pages.head_dim), v = VRowStride(p.pages);
  const size_t rows = ItemRows(p.pages);
  // Queries, a tile of K and of V, and two softmax states per row: see attention.cc.
  return rows * k + (k + v) * kTilePositions + 2 * rows * (Padded(p.pages.value_dim) + kPadding);
}

AttentionTask PrepareAttention(host::OpList& list, const AttentionParams& p) {
  CheckPages(p.pages);
  const size_t runs = CountHeadRuns(p, 1);
  uint32_t heads_per_item = 1;
  ForHeadRuns(p, 1, [&](uint32_t, uint32_t heads, uint32_t, uint32_t) {
    heads_per_item = std::max(heads_per_item, heads);
  });
  AttentionTask task{};
  task.params = p;
  task.k_row_bytes = tensor::RowBytes(p.pages.type, p.pages.head_dim);
  if (!p.pages.latent) task.v_row_bytes = tensor::RowBytes(p.pages.type, p.pages.value_dim);
  task.threads = list.threads();
  task.heads_per_item = heads_per_item;
  task.tokens_per_item = std::max(1u, ItemRows(p.pages) / heads_per_item);
  task.partial_stride = Padded(p.pages.value_dim) + kPadding;
  // Every size below is monotonic in tokens, num_seqs and max_context_len, so a plan pass at the
  // limits covers all steps.
  const size_t whole = runs * (CeilDiv(p.tokens, task.tokens_per_item) + p.num_seqs);
  const size_t cut = std::min(runs * p.num_seqs, size_t{kItemsPerThread} * list.threads());
  const size_t pieces = list.threads() > 1 && MaxSplits(p) > 1 ? cut * MaxSplits(p) : 0;
  task.max_partials = static_cast<uint32_t>(std::min(kMaxPartials, pieces * heads_per_item));
  task.items_at = Align(sizeof(AttentionPlan));
  task.merges_at = task.items_at + Align((whole + pieces) * sizeof(AttentionItem));
  task.partials_at = task.merges_at + Align((pieces == 0 ? 0 : cut) * sizeof(AttentionMerge));
  list.ReserveScratch(
      task.partials_at + size_t{task.max_partials} * task.partial_stride * sizeof(float),
      AttentionThreadFloats(p) * sizeof(float));
  return task;
}

void BuildAttentionPlan(const AttentionTask& task, const host::TaskContext& context) {
  Planner(task, context.shared_scratch).Build();
}

}  // namespace tandem::kernels::cpu
