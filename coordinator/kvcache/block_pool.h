// BlockPool: the physical KV blocks of one KV group, and their owners.
//
// Invariants: a block is in exactly one of two intrusive lists, in use (some BlockRef holds it) or
// free. The free list is in the order of reuse: blocks without contents first, then those in the
// prefix index, oldest first. A free block keeps its contents until it is allocated again;
// `on_evict` is called just before. Every operation is O(1). Single-threaded (the engine thread). A
// pool outlives its refs.
#ifndef TANDEM_COORDINATOR_KVCACHE_BLOCK_POOL_H_
#define TANDEM_COORDINATOR_KVCACHE_BLOCK_POOL_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "coordinator/kvcache/block_ref.h"
#include "coordinator/kvcache/prefix_index.h"

namespace tandem::coordinator {

class BlockPool {
 public:
  // `contents` of the free `block` are about to be overwritten.
  using EvictFn = std::function<void(BlockId block, PrefixNodeId contents)>;

  BlockPool(uint32_t num_blocks, EvictFn on_evict);
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // The first block of the free list; an empty ref if there is none.
  BlockRef Allocate();
  // Adds an owner to a block, in use or free; its contents are kept.
  BlockRef Share(BlockId block);

  // Evicts the contents of `block`, which is reused next. REQUIRES: it has contents and is not in
  // use.
  void Evict(BlockId block);
  // Evicts the contents of every block that is not in use. O(blocks).
  void EvictAll();
  // Evicts the contents of every block. REQUIRES: no block is in use.
  void Forget();

  // Marks the contents of a block in use as those of a prefix node. Once per allocation.
  void SetContents(BlockId block, PrefixNodeId contents);
  // kNoPrefix if the block is not in the prefix index.
  PrefixNodeId contents(BlockId block) const { return at(block).contents; }
  bool in_use(BlockId block) const { return at(block).owners > 0; }
  uint32_t owners(BlockId block) const { return at(block).owners; }

  uint32_t total_blocks() const { return num_blocks_; }
  // Blocks that can be allocated, including cached ones.
  uint32_t free_blocks() const { return num_free_; }
  // Free blocks whose contents may still be hit.
  uint32_t cached_blocks() const { return num_cached_; }
  // Total number of releases.
  uint64_t num_returns() const { return num_returns_; }

  // Checks both lists. INTERNAL naming the inconsistency.
  absl::Status CheckIntegrity() const;

 private:
  friend class BlockRef;
  struct Block {
    uint32_t previous;
    uint32_t next;
    uint32_t owners = 0;
    PrefixNodeId contents = kNoPrefix;
  };

  const Block& at(BlockId block) const { return blocks_[Checked(block)]; }
  Block& at(BlockId block) { return blocks_[Checked(block)]; }
  uint32_t Checked(BlockId block) const;
  void AddOwner(BlockId block);
  void DropOwner(BlockId block);
  void Unlink(uint32_t block);
  void LinkBefore(uint32_t block, uint32_t next);
  absl::Status CheckList(uint32_t head, bool in_use, std::vector<bool>& seen) const;

  const uint32_t num_blocks_;
  const uint32_t free_head_;  // sentinels of the two lists, after the blocks
  const uint32_t used_head_;
  const EvictFn on_evict_;
  std::vector<Block> blocks_;  // (num_blocks + 2)
  uint32_t num_free_ = 0;
  uint32_t num_cached_ = 0;
  uint64_t num_returns_ = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_KVCACHE_BLOCK_POOL_H_
