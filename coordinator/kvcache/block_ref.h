// BlockRef: an owner of one KV block. Copying shares the block; destruction of the last owner
// returns it to its pool.
#ifndef TANDEM_COORDINATOR_KVCACHE_BLOCK_REF_H_
#define TANDEM_COORDINATOR_KVCACHE_BLOCK_REF_H_

#include <utility>

#include "common/base/ids.h"

namespace tandem::coordinator {

class BlockPool;

// Empty (id() is kNoBlock) or an owner. Single-threaded, as its pool.
class BlockRef {
 public:
  BlockRef() = default;
  BlockRef(const BlockRef& other);
  BlockRef(BlockRef&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)), id_(std::exchange(other.id_, kNoBlock)) {}
  BlockRef& operator=(BlockRef other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~BlockRef() { Reset(); }

  BlockId id() const { return id_; }
  explicit operator bool() const { return pool_ != nullptr; }
  // Releases the block.
  void Reset();

 private:
  friend class BlockPool;
  BlockRef(BlockPool* pool, BlockId id);

  BlockPool* pool_ = nullptr;
  BlockId id_ = kNoBlock;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_KVCACHE_BLOCK_REF_H_
