#include "coordinator/startup/kv_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/kv/blocks.h"
#include "common/kv/kv_shape.h"
#include "common/model/human_bytes.h"
#include "common/model/kv_cache_type.h"
#include "common/model/shard.h"
#include "common/model/state_bytes.h"

namespace tandem::coordinator {
namespace {

constexpr uint64_t kDefaultKvBytes = 4ull << 30;

// All ranks' shard plans; an error if the tensor-parallel size is not possible.
absl::StatusOr<std::vector<model::ShardPlan>> ShardPlans(const model::ModelSpec& spec, int size,
                                                         bool expert_parallel) {
  std::vector<model::ShardPlan> plans;
  for (int rank = 0; rank < size; ++rank) {
    TANDEM_ASSIGN_OR_RETURN(model::ShardPlan plan,
                            model::MakeShardPlan(spec, rank, size, expert_parallel));
    plans.push_back(plan);
  }
  return plans;
}

// What the workers' copies of the weights leave of `available_bytes`.
absl::StatusOr<uint64_t> WithoutWeights(const config::DeviceConfig& device, uint64_t model_bytes,
                                        uint64_t available_bytes) {
  if (!device.copies_weights()) return available_bytes;
  if (model_bytes > available_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the weights need ", model::HumanBytes(model_bytes),
                     " of memory over all ranks, only ", model::HumanBytes(available_bytes),
                     " are free: --no-repack-weights computes on the mapped file"));
  }
  return available_bytes - model_bytes;
}

// What the adapters of all ranks leave of `available_bytes`.
absl::StatusOr<uint64_t> WithoutAdapters(const ModelSizes& model,
                                         const std::vector<model::ShardPlan>& plans,
                                         uint64_t available_bytes) {
  uint64_t bytes = 0;
  for (const model::Adapter* const adapter : model.adapters) {
    for (const auto& plan : plans) bytes += model::AdapterBytes(*adapter, model.spec, plan);
  }
  if (bytes > available_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the adapters of --lora-modules need ", model::HumanBytes(bytes),
                     " of memory over all ranks, beside the weights only ",
                     model::HumanBytes(available_bytes), " are free"));
  }
  return available_bytes - bytes;
}

// What the recurrent states of all ranks leave of `available_bytes`.
absl::StatusOr<uint64_t> WithoutStates(const config::WorkerConfig& config,
                                       const model::ModelSpec& spec,
                                       const std::vector<model::ShardPlan>& plans,
                                       uint64_t available_bytes) {
  const uint64_t sequences = config.limits.max_num_seqs;
  uint64_t of_sequence = 0;
  for (const model::ShardPlan& plan : plans)
    of_sequence += model::StateBytesPerSequence(spec, plan);
  if (of_sequence == 0) return available_bytes;
  if (const uint64_t most = available_bytes / of_sequence; sequences > most) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the recurrent states of ", sequences, " sequences need ",
        model::HumanBytes(sequences * of_sequence), " over all ranks (",
        model::HumanBytes(of_sequence), " each), only ", model::HumanBytes(available_bytes),
        " of memory are free: lower --max-num-seqs to at most ", most));
  }
  return available_bytes - sequences * of_sequence;
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> KvBytesPerRank(const config::WorkerConfig& config, int size,
                                                     const ModelSizes& model,
                                                     uint64_t available_bytes) {
  const model::ModelSpec& spec = model.spec;
  const config::CacheConfig& cache = config.cache;
  TANDEM_RETURN_IF_ERROR(model::CheckKvCacheType(spec, cache.kv_cache_type));
  TANDEM_ASSIGN_OR_RETURN(auto plans, ShardPlans(spec, size, config.model.expert_parallel));
  std::vector<model::ShardPlan> draft_plans;
  if (model.draft != nullptr) {
    TANDEM_RETURN_IF_ERROR(
        Annotate(model::CheckKvCacheType(*model.draft, cache.kv_cache_type), "the draft model"));
    auto found = ShardPlans(*model.draft, size, /*expert_parallel=*/false);
    if (!found.ok()) return Annotate(found.status(), "the draft model");
    draft_plans = *std::move(found);
  }
  const bool by_default = cache.num_kv_blocks == 0 && cache.kv_cache_memory.is_auto();
  const bool on_device = config.device.device == config::Device::kCuda;
  if (!on_device) {
    TANDEM_ASSIGN_OR_RETURN(available_bytes,
                            WithoutWeights(config.device, model.bytes, available_bytes));
    TANDEM_ASSIGN_OR_RETURN(available_bytes, WithoutAdapters(model, plans, available_bytes));
    TANDEM_ASSIGN_OR_RETURN(available_bytes, WithoutStates(config, spec, plans, available_bytes));
  }
  // The worker computes it from its device's memory.
  if (on_device && by_default) return std::vector<uint64_t>(plans.size(), 0);
  std::vector<kv::KvShape> ranks;
  for (const model::ShardPlan& plan : plans) {
    ranks.push_back(kv::MakeKvShape(spec, plan, config));
    if (model.draft == nullptr) continue;
    kv::AddDraftModel(*model.draft, draft_plans[ranks.size() - 1], config, ranks.back());
  }
  uint64_t blocks = cache.num_kv_blocks;
  if (by_default) {
    const uint64_t per_seq =
        kv::BlocksFor<uint64_t>(config.model.spec.max_model_len, cache.block_size);
    const uint64_t limit = std::min(kDefaultKvBytes, available_bytes);
    blocks = std::min(per_seq * config.limits.max_num_seqs, kv::MostBlocks(ranks, limit));
  } else if (blocks == 0) {
    blocks = kv::MostBlocks(ranks, cache.kv_cache_memory.bytes);
  }
  if (blocks == 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the KV cache memory holds no block: ", ranks[0].CountText(1), " take ",
                     kv::TotalBytes(ranks, 1), " bytes over all ranks"));
  }
  if (const uint64_t needed = kv::TotalBytes(ranks, blocks);
      !on_device && needed > available_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the KV cache of all ranks needs ", needed, " bytes (", ranks[0].CountText(blocks),
        "), only ", available_bytes, " bytes of memory are free"));
  }
  std::vector<uint64_t> bytes;
  for (const kv::KvShape& rank : ranks) bytes.push_back(rank.Bytes(blocks));
  return bytes;
}

}  // namespace tandem::coordinator
