// SequenceBlocks: the KV blocks held by one sequence, one block table per KV group, and snapshots
// of its recurrent state. Filled by BlockManager.
#ifndef TANDEM_COORDINATOR_KVCACHE_SEQUENCE_BLOCKS_H_
#define TANDEM_COORDINATOR_KVCACHE_SEQUENCE_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "coordinator/kvcache/block_ref.h"
#include "coordinator/kvcache/prefix_index.h"

namespace tandem::coordinator {

// Block i holds tokens [i * block_size, (i + 1) * block_size). Blocks before `first_live` are empty
// refs (kNoBlock): they are before the sliding window.
struct BlockTable {
  std::vector<BlockRef> blocks;
  uint32_t first_live = 0;
  // For the tokens known at the start: the blocks of all of them, the most held at a time, and how
  // many more are still reserved, which new admissions may not use.
  uint32_t known_blocks = 0;
  uint32_t peak_blocks = 0;
  uint32_t reserved_blocks = 0;

  uint32_t num_live() const { return static_cast<uint32_t>(blocks.size()) - first_live; }
};

// A snapshot of the state after `num_tokens` that steps in flight compute.
struct PendingSnapshot {
  BlockRef snapshot;
  uint32_t num_tokens = 0;
};

// Movable. Destruction releases all blocks and snapshots.
class SequenceBlocks {
 public:
  // One per KV group; none before the first allocation.
  const std::vector<BlockTable>& tables() const { return tables_; }
  bool empty() const { return tables_.empty(); }
  // The length of every group's table, released blocks included.
  uint32_t num_blocks() const {
    return tables_.empty() ? 0 : static_cast<uint32_t>(tables_[0].blocks.size());
  }

  // The snapshot that the allocation's first step loads, or the next one after RestoreState;
  // kNoBlock: none, or the step is computed.
  BlockId loaded_snapshot() const { return loaded_.id(); }
  // The snapshot of the state before drafts; kNoBlock: none.
  BlockId saved_state() const { return saved_.id(); }
  const std::vector<PendingSnapshot>& pending_snapshots() const { return pending_; }

 private:
  friend class BlockManager;

  std::vector<BlockTable> tables_;
  BlockRef loaded_;
  BlockRef saved_;
  std::vector<PendingSnapshot> pending_;  // by num_tokens
  PrefixRoot root_;                       // of its prefixes
  PrefixPin published_;                   // the last node of this sequence's published prefix
  uint32_t num_published_ = 0;            // blocks
  bool can_publish_ = true;               // false after a hash collision
  uint32_t num_hit_blocks_ = 0;           // that a prompt with the same tokens would hit now
  uint64_t hit_hash_ = 0;                 // of the last of them, or the root's
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_KVCACHE_SEQUENCE_BLOCKS_H_
