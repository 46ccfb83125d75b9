#include "common/kv/snapshot_interval.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/kv/snapshots.h"
#include "common/model/kv_bytes.h"
#include "common/model/kv_cache_type.h"
#include "common/model/shard.h"
#include "common/model/state_bytes.h"

namespace tandem::kv {
namespace {

// Of the whole model, so that all ranks agree.
absl::StatusOr<uint32_t> IntervalByCost(const model::ModelSpec& spec,
                                        const config::CacheConfig& cache) {
  TANDEM_RETURN_IF_ERROR(model::CheckKvCacheType(spec, cache.kv_cache_type));
  TANDEM_ASSIGN_OR_RETURN(const model::ShardPlan whole, model::MakeShardPlan(spec, 0, 1, false));
  const uint64_t state = model::StateBytesPerSequence(spec, whole);
  const uint64_t block =
      model::KvBytesPerToken(spec, whole, cache.kv_cache_type) * uint64_t{cache.block_size};
  const uint64_t blocks = std::max<uint64_t>(1, state / std::max<uint64_t>(1, block));
  const uint64_t most = std::max<uint64_t>(1, spec.context_length / cache.block_size);
  return static_cast<uint32_t>(std::min(blocks, most)) * cache.block_size;
}

}  // namespace

absl::StatusOr<uint32_t> SnapshotInterval(const model::ModelSpec& spec,
                                          const config::CacheConfig& cache, bool prefix_caching) {
  const uint32_t interval = cache.state_snapshot_interval;
  if (interval % cache.block_size != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--state-snapshot-interval ", interval,
                                                   " is no multiple of --block-size ",
                                                   cache.block_size));
  }
  if (!spec.delta_net.has_value() || !prefix_caching) return 0;
  return interval != 0 ? interval : IntervalByCost(spec, cache);
}

uint32_t NumSnapshots(const std::vector<uint32_t>& num_blocks, const config::CacheConfig& cache) {
  const uint32_t most = *std::ranges::max_element(num_blocks);
  return static_cast<uint32_t>(NumSnapshots(most, cache.state_snapshot_interval, cache.block_size));
}

}  // namespace tandem::kv
