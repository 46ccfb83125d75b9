// PrefixIndex: maps full blocks of tokens to KV blocks: a tree of prefixes indexed by a chained
// hash.
//
// A node is one full block of tokens after its parent (the tokens before it): two prompts share a
// node exactly when they have one root and agree up to its end. A node is found by xxHash64(tokens,
// seed = the parent's hash, or the root's), and is a hit only if the parent and the token ids are
// equal; of two different nodes with one hash the first is kept and the second is not cached.
//
// Prompts with different cache salts have different roots, so that they share no node. Nothing
// compares salts themselves: a root is 128 bits of the SHA-256 of a key and the salt.
//
// Per KV group a node has at most one block. A node exists while a block, a child or a pin holds
// it: so a node without a block may have a child with one (a sliding window releases early blocks).
// Single-threaded (the engine thread).
#ifndef TANDEM_COORDINATOR_KVCACHE_PREFIX_INDEX_H_
#define TANDEM_COORDINATOR_KVCACHE_PREFIX_INDEX_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/base/ids.h"

namespace tandem::coordinator {

using PrefixNodeId = int32_t;
// As a parent, the empty prefix; otherwise "no node".
inline constexpr PrefixNodeId kNoPrefix = -1;

// The empty prefix of all prompts with one cache salt, until Reset.
struct PrefixRoot {
  uint64_t hash = 0;   // the seed of its first blocks
  uint64_t check = 0;  // what distinguishes salts besides
  bool operator==(const PrefixRoot&) const = default;
};

class PrefixIndex {
 public:
  using HashFn = uint64_t (*)(std::span<const TokenId> tokens, uint64_t parent_hash);
  static uint64_t XxHash(std::span<const TokenId> tokens, uint64_t parent_hash);

  // Tests pass a hash that collides.
  PrefixIndex(uint32_t block_size, uint32_t num_groups, uint64_t key, HashFn hash = &XxHash);

  PrefixRoot Root(std::string_view salt = "") const;
  // No node is found any more from the roots of now on.
  void Reset();

  // The hash of one block of tokens after `parent`, under `root`.
  uint64_t HashOf(PrefixRoot root, PrefixNodeId parent, std::span<const TokenId> tokens) const;
  // The same of the prefix with `parent_hash`, which need not have a node.
  uint64_t HashAfter(uint64_t parent_hash, std::span<const TokenId> tokens) const;
  // The node of one block of tokens, whose HashOf is `hash`, after `parent`; kNoPrefix if there is
  // none.
  PrefixNodeId Find(PrefixRoot root, PrefixNodeId parent, std::span<const TokenId> tokens,
                    uint64_t hash) const;
  // The same, added if new: the caller must pin it or attach a block. kNoPrefix if another node has
  // its hash.
  PrefixNodeId FindOrAdd(PrefixRoot root, PrefixNodeId parent, std::span<const TokenId> tokens);
  uint64_t hash_at(PrefixNodeId node) const { return nodes_[node].hash; }
  // Whether any node has that hash.
  bool Has(uint64_t hash) const { return by_hash_.contains(hash); }

  // The block that holds a node's K and V in `group`, or kNoBlock.
  BlockId block(PrefixNodeId node, uint32_t group) const;
  // `node` has no block in `group` yet.
  void Attach(PrefixNodeId node, uint32_t group, BlockId block);
  void Detach(PrefixNodeId node, uint32_t group);

  size_t num_nodes() const { return by_hash_.size(); }
  // INTERNAL naming the inconsistency.
  absl::Status CheckIntegrity() const;

 private:
  friend class PrefixPin;
  struct Node {
    uint64_t hash = 0;
    PrefixRoot root{};
    PrefixNodeId parent = kNoPrefix;
    uint32_t holders = 0;  // blocks + children + pins; 0 in a node of the free list
  };

  std::span<const TokenId> TokensOf(PrefixNodeId node) const;
  bool Matches(PrefixNodeId node, PrefixRoot root, PrefixNodeId parent,
               std::span<const TokenId> tokens) const;
  PrefixNodeId NewNode();
  void Hold(PrefixNodeId node);
  // Drops one holder, and removes every ancestor without holders.
  void Unhold(PrefixNodeId node);

  const uint32_t block_size_;
  const uint32_t num_groups_;
  uint64_t key_;
  const HashFn hash_;
  std::vector<Node> nodes_;
  std::vector<TokenId> tokens_;  // (nodes, block_size)
  std::vector<BlockId> blocks_;  // (nodes, groups)
  std::vector<PrefixNodeId> free_nodes_;
  absl::flat_hash_map<uint64_t, PrefixNodeId> by_hash_;
};

// Keeps a node alive. Movable; must not outlive the index.
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
