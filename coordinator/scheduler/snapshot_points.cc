#include "coordinator/scheduler/snapshot_points.h"

#include <algorithm>

namespace tandem::coordinator {

SnapshotPoints SnapshotPoints::Of(const KvCacheConfig& config, uint32_t prompt_len,
                                  const PrefixMatch& match) {
  if (!config.snapshots.has_value() || !config.enable_prefix_cache) return {};
  return {.interval = config.snapshots->interval,
          .prompt_end = (prompt_len - 1) / config.block_size * config.block_size,
          .shared_end = match.num_tokens_in_blocks};
}

uint32_t SnapshotPoints::After(uint32_t position) const {
  if (interval == 0) return UINT32_MAX;
  uint64_t next = (uint64_t{position} / interval + 1) * interval;
  for (const uint32_t point : {prompt_end, shared_end}) {
    if (point > position) next = std::min<uint64_t>(next, point);
  }
  return static_cast<uint32_t>(std::min<uint64_t>(next, UINT32_MAX));
}

uint32_t SnapshotPoints::NotAfter(uint32_t position) const {
  if (interval == 0) return 0;
  uint32_t last = position / interval * interval;
  for (const uint32_t point : {prompt_end, shared_end}) {
    if (point <= position) last = std::max(last, point);
  }
  return last;
}

uint32_t SnapshotPoints::Fit(uint32_t begin, uint32_t num_tokens) const {
  const uint32_t first = After(begin);
  if (first == UINT32_MAX || After(first) - begin > num_tokens) return num_tokens;
  return first - begin;
}

}  // namespace tandem::coordinator
