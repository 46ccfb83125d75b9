// SnapshotPool: the snapshots of recurrent states, and the prefixes that they are states after. To
// the prefix index they are one more KV group: a node has at most one snapshot.
//
// A snapshot that no sequence uses is free and may be taken for another state, in the order of
// BlockPool. It is evicted with the blocks that it belongs to: without these it can't be hit.
// Single-threaded (the engine thread). Outlives its refs.
#ifndef TANDEM_COORDINATOR_KVCACHE_SNAPSHOT_POOL_H_
#define TANDEM_COORDINATOR_KVCACHE_SNAPSHOT_POOL_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "coordinator/kvcache/block_pool.h"
#include "coordinator/kvcache/prefix_index.h"
#include "coordinator/kvcache/sequence_blocks.h"

namespace tandem::coordinator {

class SnapshotPool {
 public:
  // `index` is borrowed; `group` is its number for snapshots.
  SnapshotPool(uint32_t num_snapshots, PrefixIndex& index, uint32_t group);

  bool Has(PrefixNodeId node) const { return index_.block(node, group_) != kNoBlock; }
  // Adds an owner. REQUIRES: Has(node).
  BlockRef Share(PrefixNodeId node) { return pool_.Share(index_.block(node, group_)); }
  // One for a state that is yet to be computed; empty if all are in use.
  BlockRef Take() { return pool_.Allocate(); }
  // `snapshot` is computed: the state at the end of `node`. Without effect if the node has one.
  void Publish(PrefixNodeId node, const BlockRef& snapshot);
  // The node loses a block: its snapshot, if it has one, can be taken next.
  void Evict(PrefixNodeId node);
  // As BlockPool::EvictAll.
  void EvictAll() { pool_.EvictAll(); }
  // As BlockPool::Forget.
  void Forget() { pool_.Forget(); }

  uint32_t num_snapshots() const { return pool_.total_blocks(); }
  uint32_t num_cached() const { return pool_.cached_blocks(); }
  // That can be taken, cached ones included.
  uint32_t num_free() const { return pool_.free_blocks(); }
  // `live`: every existing allocation. INTERNAL naming the inconsistency.
  absl::Status CheckIntegrity(std::span<const SequenceBlocks* const> live) const;

 private:
  PrefixIndex& index_;
  const uint32_t group_;
  BlockPool pool_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_KVCACHE_SNAPSHOT_POOL_H_
