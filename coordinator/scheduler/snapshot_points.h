// SnapshotPoints: where a snapshot of a sequence's recurrent state is worth having for prompts that
// begin like it. Plain data.
#ifndef TANDEM_COORDINATOR_SCHEDULER_SNAPSHOT_POINTS_H_
#define TANDEM_COORDINATOR_SCHEDULER_SNAPSHOT_POINTS_H_

#include <cstdint>

#include "coordinator/kvcache/block_manager.h"

namespace tandem::coordinator {

struct SnapshotPoints {
  uint32_t interval = 0;  // tokens: every multiple is a point; 0: no points at all
  // Two more points, in tokens; 0: none.
  uint32_t prompt_end = 0;  // the last block boundary that leaves a prompt token to compute
  uint32_t shared_end = 0;  // where a prompt seen before departs from this one

  // Of a sequence that begins with `match`.
  static SnapshotPoints Of(const KvCacheConfig& config, uint32_t prompt_len,
                           const PrefixMatch& match);

  // The first point after `position`; UINT32_MAX: none.
  uint32_t After(uint32_t position) const;
  // The last point that is not after `position`; 0: none.
  uint32_t NotAfter(uint32_t position) const;
  // How many of `num_tokens` tokens from `begin` on one step may compute: it passes one point at
  // most.
  uint32_t Fit(uint32_t begin, uint32_t num_tokens) const;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SCHEDULER_SNAPSHOT_POINTS_H_
