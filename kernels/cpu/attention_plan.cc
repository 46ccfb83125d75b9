#include "kernels/cpu/attention_plan.h"

#include <algorithm>

#include "common/base/check.h"
#include "kernels/host/op_list.h"

namespace tandem::kernels::cpu {
namespace {

// With fewer items per thread than this, single-token queries are split (split-KV).
constexpr uint32_t kItemsPerThread = 4;
// Upper bound on rows of split states; a token that exceeds it is not split.
constexpr size_t kMaxPartials = 16384;

size_t CeilDiv(size_t a, size_t b) { return (a + b - 1) / b; }

// Calls visit(head_begin, heads, kv_head) for each run of query heads that may form an item.
template <typename Visit>
void ForHeadRuns(const AttentionParams& p, Visit visit) {
  for (uint32_t h = 0; h < p.heads;) {
    const uint32_t global = p.first_head + h;
    const uint32_t left_in_group = p.heads_per_kv - global % p.heads_per_kv;
    const uint32_t heads = std::min({p.heads - h, left_in_group, kItemHeads});
    visit(h, heads, global / p.heads_per_kv - p.first_kv_head);
    h += heads;
  }
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
    const bool few = CountItems() < size_t{kItemsPerThread} * task_.threads && task_.threads > 1;
    for (uint32_t seq = 0; seq < p_.num_seqs; ++seq) AddSequence(seq, few);
  }

 private:
  uint32_t Tokens(uint32_t seq) const {
    return static_cast<uint32_t>(p_.query_offsets[seq + 1] - p_.query_offsets[seq]);
  }

  size_t CountItems() const {
    size_t runs = 0;
    ForHeadRuns(p_, [&](uint32_t, uint32_t, uint32_t) { ++runs; });
    size_t blocks = 0;
    for (uint32_t seq = 0; seq < p_.num_seqs; ++seq)
      blocks += CeilDiv(Tokens(seq), task_.tokens_per_item);
    return runs * blocks;
  }

  // The last tokens attend to the most positions, so they come first, which balances the threads.
  void AddSequence(uint32_t seq, bool cut) {
    const auto begin = static_cast<uint32_t>(p_.query_offsets[seq]);
    for (uint32_t end = begin + Tokens(seq); end > begin;) {
      const uint32_t tokens = std::min(end - begin, task_.tokens_per_item);
      end -= tokens;
      ForHeadRuns(p_, [&](uint32_t head, uint32_t heads, uint32_t kv_head) {
        const AttentionItem item{seq, end, tokens, head, heads, kv_head, kAllSplits, 0};
        if (!cut || !AddSplits(item)) items_[plan_.num_items++] = item;
      });
    }
  }

  // One item per split; false if there is only one split, more than one token, or no room.
  bool AddSplits(AttentionItem item) {
    const PositionRange range = VisibleTo(p_, item.seq, item.token_begin);
    const int32_t first = range.begin / kSplitPositions;
    const auto splits = static_cast<uint32_t>((range.end - 1) / kSplitPositions - first + 1);
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

size_t AttentionThreadFloats(const AttentionParams& p) {
  const size_t k = Padded(p.pages.head_dim), v = VRowStride(p.pages);
  const size_t rows = ItemRows(p.pages);
  // Queries, a tile of K and of V, and two softmax states per row: see attention.cc.
  return rows * k + (k + v) * kTilePositions + 2 * rows * (Padded(p.pages.value_dim) + kPadding);
}

AttentionTask PrepareAttention(host::OpList& list, const AttentionParams& p) {
  CheckPages(p.pages);
  size_t runs = 0;
  uint32_t heads_per_item = 1;
  ForHeadRuns(p, [&](uint32_t, uint32_t heads, uint32_t) {
    ++runs;
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
