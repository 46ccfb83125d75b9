// ShardPlan: which heads, columns, rows and vocabulary entries belong to rank r of N.
//
// TP N is possible exactly when N divides the query heads, and with a delta net its key heads. A
// rank holds the KV heads that its query heads read, so a KV head may be replicated on two ranks.
// FFN columns and vocabulary rows split unevenly if they must. Plain data.
#ifndef TANDEM_COMMON_MODEL_SHARD_H_
#define TANDEM_COMMON_MODEL_SHARD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/model/spec.h"

namespace tandem::model {

// The largest tensor-parallel size.
inline constexpr int kMaxRanks = 64;

// Half-open [begin, end).
struct Range {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

struct ShardPlan {
  int rank = 0;
  int size = 1;
  Range heads;       // global query heads of this rank
  Range expert_ffn;  // FFN columns of every expert; all of them if whole experts are assigned to
                     // ranks
  Range shared_ffn;  // FFN columns of the shared experts
  Range delta_key_heads;  // of a delta net; their value heads too
  Range experts;          // whole experts; all of them if their columns are split
  Range vocab;            // vocabulary rows; lower ranks hold one more if the split is uneven
  bool expert_parallel = false;
  bool operator==(const ShardPlan&) const = default;

  // The widest vocabulary slice of any rank: gathered logits have this many columns per rank,
  // padding never sampled.
  uint32_t vocab_slice_max = 0;
};

// The global KV heads that the rank's query heads read, in layers with such heads.
Range KvHeadRange(const ModelSpec& spec, const ShardPlan& plan, const HeadSizes& heads);

// The rank's FFN columns of a dense layer.
Range FfnRange(const ModelSpec& spec, const ShardPlan& plan, uint32_t layer);

// INVALID_ARGUMENT, in one line with both numbers, if `size` does not divide those heads, or
// with `expert_parallel` (whole experts to ranks instead of columns) if there are too few experts.
absl::StatusOr<ShardPlan> MakeShardPlan(const ModelSpec& spec, int rank, int size,
                                        bool expert_parallel = false);

}  // namespace tandem::model

#endif  // TANDEM_COMMON_MODEL_SHARD_H_
