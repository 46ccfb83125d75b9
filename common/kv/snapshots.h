// Snapshots of recurrent states: copies of a sequence's state at block boundaries, so that a prompt
// with the same beginning can start there (docs/decisions/0019-snapshots-of-recurrent-states.md).
#ifndef TANDEM_COMMON_KV_SNAPSHOTS_H_
#define TANDEM_COMMON_KV_SNAPSHOTS_H_

#include <cstdint>

namespace tandem::kv {

// Index into a worker's snapshots.
using SnapshotId = int32_t;
inline constexpr SnapshotId kNoSnapshot = -1;

// One per `interval` tokens, a multiple of the block size, of what `num_blocks` blocks hold; none
// if it is 0.
constexpr uint64_t NumSnapshots(uint64_t num_blocks, uint32_t interval, uint32_t block_size) {
  if (interval == 0) return 0;
  const uint64_t blocks = interval / block_size;
  return num_blocks / blocks + (num_blocks % blocks != 0);
}

}  // namespace tandem::kv

#endif  // TANDEM_COMMON_KV_SNAPSHOTS_H_
