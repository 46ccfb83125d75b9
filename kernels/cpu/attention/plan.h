// How one attention call is divided into items for threads, decided when the step runs: lengths are
// in device memory.
//
// An item is a block of query tokens of one sequence with the query heads that read one KV head;
// or, if enough items remain, one token with those of KV heads whose pages lie side by side, so
// that longer runs of memory are read at once. Positions are walked in tiles of 64 counted from 0;
// the softmax state of each split of 512 positions is computed separately, and splits are merged in
// order (split-KV). If there are too few items to occupy the threads, the item of a single-token
// query is cut into one item per split, whose states are kept and merged by a second pass. Either
// way a row's arithmetic is the same, so its bits do not depend on the cut.
#ifndef TANDEM_KERNELS_CPU_ATTENTION_PLAN_H_
#define TANDEM_KERNELS_CPU_ATTENTION_PLAN_H_

#include <cstddef>
#include <cstdint>

#include "kernels/host/task.h"
#include "kernels/ops.h"

namespace tandem::kernels::host {
class OpList;
}

namespace tandem::kernels::cpu {

inline constexpr int32_t kTilePositions = 64;
inline constexpr int32_t kSplitPositions = 512;
static_assert(kSplitPositions % kTilePositions == 0);
// Query heads of an item, at most.
inline constexpr uint32_t kItemHeads = 64;
// Query rows (tokens x heads) of an item, at most: enough to hide the cost of unpacking a tile, few
// enough for the cache if rows are as long as MLA's.
inline constexpr uint32_t kMaxItemRows = 128;
static inline uint32_t ItemRows(const KvPages& pages) {
  return pages.head_dim <= 256 ? kMaxItemRows : 64;
}
// Values per row are padded to this, the widest vector.
inline constexpr uint32_t kPadding = 16;

static inline uint32_t Padded(uint32_t dim) { return (dim + kPadding - 1) / kPadding * kPadding; }

// Floats from one unpacked V row to the next; if pages are latent, V is part of the K row.
static inline uint32_t VRowStride(const KvPages& pages) {
  return Padded(pages.latent ? pages.head_dim : pages.value_dim);
}

// Positions whose words are neighbours where K lies in columns.
inline constexpr int32_t kGroupPositions = 16;
// Whether K of such pages can lie in columns: groups and tiles are parts and multiples of blocks.
bool TakesKeyColumns(const KvPages& pages);

inline constexpr int32_t kAllSplits = -1;

struct AttentionItem {
  uint32_t seq;
  uint32_t token_begin;  // query row in the step
  uint32_t tokens;
  uint32_t head_begin;  // first of the query heads
  uint32_t heads;
  uint32_t kv_head;   // of the first query head, in the pages
  uint32_t kv_heads;  // read by the item, side by side; one if there is more than one token
  int32_t split;      // only this split, keeping its states; or kAllSplits, writing the output
  uint32_t partial;   // where the states go: partial, partial + 1, ... for each head
};

// A token whose splits were separate items: partials (splits, heads) from `partial` on.
struct AttentionMerge {
  uint32_t token;
  uint32_t head_begin;
  uint32_t heads;
  uint32_t splits;
  uint32_t partial;
};

// Head of the shared scratch.
struct AttentionPlan {
  uint32_t num_items;
  uint32_t num_merges;
  uint32_t next_item;   // taken by atomic addition
  uint32_t next_merge;  // likewise
};

// The op with everything known while encoding.
struct AttentionTask {
  AttentionParams params;
  size_t k_row_bytes;  // of a row in the pages
  size_t v_row_bytes;  // 0 if pages are latent
  uint32_t threads;
  uint32_t heads_per_item;   // at most, of one KV head
  uint32_t tokens_per_item;  // at most
  uint32_t max_partials;     // room for states of splits
  uint32_t partial_stride;   // floats: the padded value row, then the largest score and the sum of
                             // weights
  size_t items_at;           // byte offsets in shared scratch
  size_t merges_at;
  size_t partials_at;
};

static inline AttentionPlan* PlanOf(std::byte* shared) {
  return reinterpret_cast<AttentionPlan*>(shared);
}
static inline AttentionItem* ItemsOf(const AttentionTask& task, std::byte* shared) {
  return reinterpret_cast<AttentionItem*>(shared + task.items_at);
}
static inline AttentionMerge* MergesOf(const AttentionTask& task, std::byte* shared) {
  return reinterpret_cast<AttentionMerge*>(shared + task.merges_at);
}
static inline float* PartialOf(const AttentionTask& task, std::byte* shared, uint32_t partial) {
  return reinterpret_cast<float*>(shared + task.partials_at) +
         size_t{partial} * task.partial_stride;
}

// Positions [begin, end) visible to a query row.
struct PositionRange {
  int32_t begin;
  int32_t end;
};
static inline PositionRange VisibleTo(const AttentionParams& p, uint32_t seq, uint32_t token) {
  const int32_t end =
      p.context_lens[seq] - (p.query_offsets[seq + 1] - 1 - static_cast<int32_t>(token));
  if (p.window == 0 || end <= 0) return {0, end};
  const int64_t window = p.window;
  const int64_t begin = p.chunked ? (end - 1) / window * window : end - window;
  return {begin > 0 ? static_cast<int32_t>(begin) : 0, end};
}

// Floats of thread scratch that `attend` needs.
size_t AttentionThreadFloats(const AttentionParams& params);

// Sizes of the op; reserves its scratch in `list`.
AttentionTask PrepareAttention(host::OpList& list, const AttentionParams& params);

// The task of the entry before `attend`: fills the plan in shared scratch.
void BuildAttentionPlan(const AttentionTask& task, const host::TaskContext& context);

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_ATTENTION_PLAN_H_
