#include "common/model/shard.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace tandem::model {
namespace {

// Rank r's part of `total` items; lower ranks hold one more if the split is uneven.
Range Part(uint32_t total, int rank, int size) {
  const uint32_t base = total / size;
  const uint32_t extra = total % size;
  const uint32_t r = rank;
  const uint32_t begin = r * base + (r < extra ? r : extra);
  return {begin, begin + base + (r < extra ? 1 : 0)};
}

// FFN columns in units of 32 if every rank gets some: shard boundaries then fall between the blocks
// of most weight formats, and vector loops have full registers.
Range FfnPart(uint32_t ffn, int rank, int size) {
  constexpr uint32_t kUnit = 32;
  if (ffn % kUnit != 0 || ffn / kUnit < static_cast<uint32_t>(size)) return Part(ffn, rank, size);
  const Range units = Part(ffn / kUnit, rank, size);
  return {units.begin * kUnit, units.end * kUnit};
}

absl::Status TooFew(int size, uint32_t count, const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("tensor parallelism over ", size,
                                                 " ranks is not possible with ", count, " ", what));
}

absl::Status CheckMixture(const MoeSpec& moe, int size, bool expert_parallel) {
  const auto ranks = static_cast<uint32_t>(size);
  if (expert_parallel && moe.num_experts < ranks) return TooFew(size, moe.num_experts, "experts");
  if (!expert_parallel && moe.ffn_size < ranks) {
    return TooFew(size, moe.ffn_size, "FFN columns of an expert");
  }
  if (moe.shared_ffn_size != 0 && moe.shared_ffn_size < ranks) {
    return TooFew(size, moe.shared_ffn_size, "FFN columns of the shared experts");
  }
  return absl::OkStatus();
}

// Of the layers with a dense FFN; the largest number if there are none.
uint32_t SmallestFfn(const ModelSpec& spec) {
  const bool beside_experts = spec.moe.has_value() && spec.moe->beside_dense;
  uint32_t smallest = std::numeric_limits<uint32_t>::max();
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    if (!spec.IsMoe(layer) || beside_experts) smallest = std::min(smallest, spec.FfnSize(layer));
  }
  return smallest;
}

absl::Status CheckPossible(const ModelSpec& spec, int size, bool expert_parallel) {
  const auto ranks = static_cast<uint32_t>(size);
  if (spec.num_heads % ranks != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor parallelism over ", size, " ranks is not possible: ", size,
                     " does not divide the ", spec.num_heads, " query heads"));
  }
  const uint32_t ffn = SmallestFfn(spec);
  if (ffn < ranks) return TooFew(size, ffn, "FFN columns");
  if (spec.vocab_size < ranks) return TooFew(size, spec.vocab_size, "tokens");
  if (spec.delta_net.has_value() && spec.delta_net->key_heads % ranks != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor parallelism over ", size, " ranks is not possible: ", size, " does not divide the ",
        spec.delta_net->key_heads, " key heads of recurrent layers"));
  }
  if (expert_parallel && !spec.moe.has_value()) {
    return absl::InvalidArgumentError("expert parallelism is not possible: there are no experts");
  }
  return spec.moe.has_value() ? CheckMixture(*spec.moe, size, expert_parallel) : absl::OkStatus();
}

void CutMixture(const MoeSpec& moe, ShardPlan& plan) {
  plan.experts = plan.expert_parallel ? Part(moe.num_experts, plan.rank, plan.size)
                                      : Range{0, moe.num_experts};
  plan.expert_ffn =
      plan.expert_parallel ? Range{0, moe.ffn_size} : FfnPart(moe.ffn_size, plan.rank, plan.size);
  plan.shared_ffn = FfnPart(moe.shared_ffn_size, plan.rank, plan.size);
}

}  // namespace

Range KvHeadRange(const ModelSpec& spec, const ShardPlan& plan, const HeadSizes& heads) {
  const uint32_t group = spec.num_heads / heads.num_kv_heads;  // query heads per KV head
  return {plan.heads.begin / group, (plan.heads.end + group - 1) / group};
}

Range FfnRange(const ModelSpec& spec, const ShardPlan& plan, uint32_t layer) {
  return FfnPart(spec.FfnSize(layer), plan.rank, plan.size);
}

absl::StatusOr<ShardPlan> MakeShardPlan(const ModelSpec& spec, int rank, int size,
                                        bool expert_parallel) {
  if (size < 1 || rank < 0 || rank >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat("needed a rank from 0 to size - 1, found rank ", rank, " of ", size));
  }
  if (absl::Status status = CheckPossible(spec, size, expert_parallel); !status.ok()) return status;
  ShardPlan plan;
  plan.rank = rank;
  plan.size = size;
  plan.expert_parallel = expert_parallel;
  plan.heads = Part(spec.num_heads, rank, size);
  if (spec.delta_net.has_value()) {
    plan.delta_key_heads = Part(spec.delta_net->key_heads, rank, size);
  }
  if (spec.moe.has_value()) CutMixture(*spec.moe, plan);
  plan.vocab = Part(spec.vocab_size, rank, size);
  plan.vocab_slice_max = Part(spec.vocab_size, 0, size).size();
  return plan;
}

}  // namespace tandem::model
