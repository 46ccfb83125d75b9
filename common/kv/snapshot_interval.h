// How far apart snapshots of recurrent states are, and how many follow from that.
#ifndef TANDEM_COMMON_KV_SNAPSHOT_INTERVAL_H_
#define TANDEM_COMMON_KV_SNAPSHOT_INTERVAL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/cache_config.h"
#include "common/model/spec.h"

namespace tandem::kv {

// In tokens, a multiple of the block size, as workers are configured: --state-snapshot-interval, or
// by default the tokens whose K and V take as much memory as a snapshot. 0: no snapshots, because
// the model has no recurrent states or there is no `prefix_caching`. INVALID_ARGUMENT if the
// flag's value is no such multiple, or as model::CheckKvCacheType. Pure, thread-safe.
absl::StatusOr<uint32_t> SnapshotInterval(const model::ModelSpec& spec,
                                          const config::CacheConfig& cache, bool prefix_caching);

// The snapshots of a worker that is so configured and has `num_blocks` per KV group, at least one:
// coordinator and worker compute the same.
uint32_t NumSnapshots(const std::vector<uint32_t>& num_blocks, const config::CacheConfig& cache);

}  // namespace tandem::kv

#endif  // TANDEM_COMMON_KV_SNAPSHOT_INTERVAL_H_
