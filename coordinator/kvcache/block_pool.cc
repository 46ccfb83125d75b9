#include "coordinator/kvcache/block_pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace tandem::coordinator {

BlockRef::BlockRef(BlockPool* pool, BlockId id) : pool_(pool), id_(id) { pool_->AddOwner(id_); }

BlockRef::BlockRef(const BlockRef& other) : pool_(other.pool_), id_(other.id_) {
  if (pool_ != nullptr) pool_->AddOwner(id_);
}

void BlockRef::Reset() {
  if (pool_ == nullptr) return;
  std::exchange(pool_, nullptr)->DropOwner(std::exchange(id_, kNoBlock));
}

BlockPool::BlockPool(uint32_t num_blocks, EvictFn on_evict)
    : num_blocks_(num_blocks),
      free_head_(num_blocks),
      used_head_(num_blocks + 1),
      on_evict_(std::move(on_evict)),
      blocks_(size_t{num_blocks} + 2) {
  for (uint32_t head : {free_head_, used_head_}) {
    blocks_[head].previous = head;
    blocks_[head].next = head;
  }
  for (uint32_t block = 0; block < num_blocks_; ++block) LinkBefore(block, free_head_);
  num_free_ = num_blocks_;
}

BlockPool::~BlockPool() {
  TANDEM_CHECK(num_free_ == num_blocks_)
      << num_blocks_ - num_free_ << " of " << num_blocks_ << " blocks outlive their pool";
}

BlockRef BlockPool::Allocate() {
  if (num_free_ == 0) return BlockRef();
  const uint32_t block = blocks_[free_head_].next;
  if (PrefixNodeId contents = std::exchange(blocks_[block].contents, kNoPrefix);
      contents != kNoPrefix) {
    --num_cached_;
    on_evict_(static_cast<BlockId>(block), contents);
  }
  return BlockRef(this, static_cast<BlockId>(block));
}

BlockRef BlockPool::Share(BlockId block) { return BlockRef(this, block); }

void BlockPool::Evict(BlockId block) {
  Block& entry = at(block);
  TANDEM_CHECK(entry.owners == 0 && entry.contents != kNoPrefix)
      << "block " << block << " has " << entry.owners << " owners and contents " << entry.contents;
  on_evict_(block, std::exchange(entry.contents, kNoPrefix));
  --num_cached_;
  Unlink(static_cast<uint32_t>(block));
  LinkBefore(static_cast<uint32_t>(block), blocks_[free_head_].next);
}

void BlockPool::EvictAll() {
  for (uint32_t block = 0; block < num_blocks_; ++block) {
    const Block& entry = blocks_[block];
    if (entry.owners == 0 && entry.contents != kNoPrefix) Evict(static_cast<BlockId>(block));
  }
}

void BlockPool::Forget() {
  TANDEM_CHECK(num_free_ == num_blocks_) << num_blocks_ - num_free_ << " blocks are in use";
  for (uint32_t block = 0; block < num_blocks_; ++block) {
    const PrefixNodeId contents = std::exchange(blocks_[block].contents, kNoPrefix);
    if (contents != kNoPrefix) on_evict_(static_cast<BlockId>(block), contents);
  }
  num_cached_ = 0;
}

void BlockPool::SetContents(BlockId block, PrefixNodeId contents) {
  Block& entry = at(block);
  TANDEM_CHECK(entry.owners > 0 && entry.contents == kNoPrefix && contents != kNoPrefix)
      << "block " << block << " has " << entry.owners << " owners and contents " << entry.contents;
  entry.contents = contents;
}

uint32_t BlockPool::Checked(BlockId block) const {
  TANDEM_CHECK(block >= 0 && static_cast<uint32_t>(block) < num_blocks_)
      << "block " << block << " of " << num_blocks_;
  return static_cast<uint32_t>(block);
}

void BlockPool::AddOwner(BlockId block) {
  Block& entry = at(block);
  if (entry.owners++ > 0) return;
  Unlink(static_cast<uint32_t>(block));
  LinkBefore(static_cast<uint32_t>(block), used_head_);
  --num_free_;
  if (entry.contents != kNoPrefix) --num_cached_;
}

void BlockPool::DropOwner(BlockId block) {
  Block& entry = at(block);
  TANDEM_CHECK(entry.owners > 0) << "block " << block << " is free already";
  if (--entry.owners > 0) return;
  Unlink(static_cast<uint32_t>(block));
  const bool cached = entry.contents != kNoPrefix;
  // Blocks that no prompt can hit are reused first.
  LinkBefore(static_cast<uint32_t>(block), cached ? free_head_ : blocks_[free_head_].next);
  ++num_free_;
  ++num_returns_;
  if (cached) ++num_cached_;
}

void BlockPool::Unlink(uint32_t block) {
  Block& entry = blocks_[block];
  blocks_[entry.previous].next = entry.next;
  blocks_[entry.next].previous = entry.previous;
}

void BlockPool::LinkBefore(uint32_t block, uint32_t next) {
  Block& entry = blocks_[block];
  entry.next = next;
  entry.previous = blocks_[next].previous;
  blocks_[entry.previous].next = block;
  blocks_[next].previous = block;
}

absl::Status BlockPool::CheckList(uint32_t head, bool in_use, std::vector<bool>& seen) const {
  for (uint32_t block = blocks_[head].next; block != head; block = blocks_[block].next) {
    if (block >= num_blocks_ || seen[block]) {
      return absl::InternalError(absl::StrCat("block ", block, " is in the lists twice"));
    }
    seen[block] = true;
    if (blocks_[blocks_[block].next].previous != block) {
      return absl::InternalError(absl::StrCat("block ", block, " is badly linked"));
    }
    if ((blocks_[block].owners > 0) != in_use) {
      return absl::InternalError(absl::StrCat("block ", block, " with ", blocks_[block].owners,
                                              " owners is in the wrong list"));
    }
  }
  return absl::OkStatus();
}

absl::Status BlockPool::CheckIntegrity() const {
  std::vector<bool> seen(num_blocks_, false);
  if (absl::Status status = CheckList(free_head_, false, seen); !status.ok()) return status;
  if (absl::Status status = CheckList(used_head_, true, seen); !status.ok()) return status;
  uint32_t num_free = 0;
  uint32_t num_cached = 0;
  for (uint32_t block = 0; block < num_blocks_; ++block) {
    if (!seen[block]) return absl::InternalError(absl::StrCat("block ", block, " is in no list"));
    if (blocks_[block].owners > 0) continue;
    ++num_free;
    if (blocks_[block].contents != kNoPrefix) ++num_cached;
  }
  if (num_free != num_free_ || num_cached != num_cached_) {
    return absl::InternalError(absl::StrCat("free blocks: ", num_free, " in the list, ", num_free_,
                                            " counted; cached: ", num_cached, ", ", num_cached_));
  }
  return absl::OkStatus();
}

}  // namespace tandem::coordinator
