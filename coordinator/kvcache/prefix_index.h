// PrefixIndex: which full blocks of tokens stand in which KV blocks, as a tree of prefixes found by
// a chained hash.
//
// A node is one full block of tokens behind its parent (the tokens before it): two prompts share a
// node exactly when they agree up to its end. A node is found by xxHash64(tokens, seed = the
// parent's hash; a key at the root, so that which prompts collide is known to no client), and is a
// hit only when the parent node and the token ids are the same; of two different nodes with one
// hash the first is kept and the second not cached.
//
// Per KV group a node has at most one block. A node lives while a block, a child or a pin needs it:
// so one that lost its block may stand between its parent and a child that still has one (a sliding
// window gives early blocks back). Single-threaded (the engine thread).
#ifndef TANDEM_COORDINATOR_KVCACHE_PREFIX_INDEX_H_
#define TANDEM_COORDINATOR_KVCACHE_PREFIX_INDEX_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/base/ids.h"

namespace tandem::coordinator {

using PrefixNodeId = int32_t;
// The empty prefix as a parent; elsewhere "no node".
inline constexpr PrefixNodeId kNoPrefix = -1;

class PrefixIndex {
 public:
  using HashFn = uint64_t (*)(std::span<const TokenId> tokens, uint64_t parent_hash);
  static uint64_t XxHash(std::span<const TokenId> tokens, uint64_t parent_hash);

  // `key` is the hash of the empty prefix. Tests pass a hash that collides.
  PrefixIndex(uint32_t block_size, uint32_t num_groups, uint64_t key, HashFn hash = &XxHash);

  // The hash of one block of tokens behind `parent`.
  uint64_t HashOf(PrefixNodeId parent, std::span<const TokenId> tokens) const;
  // The node of one block of tokens, whose HashOf is `hash`, behind `parent`; kNoPrefix when there
  // is none.
  PrefixNodeId Find(PrefixNodeId parent, std::span<const TokenId> tokens, uint64_t hash) const;
  // The same, added when it is new: the caller pins it or attaches a block at once. kNoPrefix when
  // another node has its hash.
  PrefixNodeId FindOrAdd(PrefixNodeId parent, std::span<const TokenId> tokens);

  // The block that holds a node's K and V in `group`, or kNoBlock.
  BlockId block(PrefixNodeId node, uint32_t group) const;
  // `node` has no block in `group` yet.
  void Attach(PrefixNodeId node, uint32_t group, BlockId block);
  void Detach(PrefixNodeId node, uint32_t group);

  size_t num_nodes() const { return by_hash_.size(); }
  // INTERNAL saying what does not agree.
  absl::Status CheckIntegrity() const;

 private:
  friend class PrefixPin;
  struct Node {
    uint64_t hash = 0;
    PrefixNodeId parent = kNoPrefix;
    uint32_t holders = 0;  // blocks + children + pins; 0 in a node of the free list
  };

  std::span<const TokenId> TokensOf(PrefixNodeId node) const;
  bool Matches(PrefixNodeId node, PrefixNodeId parent, std::span<const TokenId> tokens) const;
  PrefixNodeId NewNode();
  void Hold(PrefixNodeId node);
  // Drops one holder, and every node up the tree that nothing holds any more.
  void Unhold(PrefixNodeId node);

  const uint32_t block_size_;
  const uint32_t num_groups_;
  const uint64_t key_;
  const HashFn hash_;
  std::vector<Node> nodes_;
  std::vector<TokenId> tokens_;  // (nodes, block_size)
  std::vector<BlockId> blocks_;  // (nodes, groups)
  std::vector<PrefixNodeId> free_nodes_;
  absl::flat_hash_map<uint64_t, PrefixNodeId> by_hash_;
};

// Keeps a node alive. Movable; outlived by its index.
class PrefixPin {
 public:
  PrefixPin() = default;
  PrefixPin(PrefixIndex& index, PrefixNodeId node) : index_(&index), node_(node) {
    if (node_ != kNoPrefix) index_->Hold(node_);
  }
  PrefixPin(PrefixPin&& other) noexcept
      : index_(other.index_), node_(std::exchange(other.node_, kNoPrefix)) {}
  PrefixPin& operator=(PrefixPin&& other) noexcept {
    std::swap(index_, other.index_);
    std::swap(node_, other.node_);
    return *this;
  }
  ~PrefixPin() {
    if (node_ != kNoPrefix) index_->Unhold(node_);
  }
  PrefixNodeId node() const { return node_; }

 private:
  PrefixIndex* index_ = nullptr;
  PrefixNodeId node_ = kNoPrefix;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_KVCACHE_PREFIX_INDEX_H_
