#include "coordinator/kvcache/prefix_index.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace tandem::coordinator {

uint64_t PrefixIndex::XxHash(std::span<const TokenId> tokens, uint64_t parent_hash) {
  return XXH64(tokens.data(), tokens.size_bytes(), parent_hash);
}

PrefixIndex::PrefixIndex(uint32_t block_size, uint32_t num_groups, uint64_t key, HashFn hash)
    : block_size_(block_size), num_groups_(num_groups), key_(key), hash_(hash) {}

PrefixRoot PrefixIndex::Root(std::string_view salt) const {
  std::string keyed(reinterpret_cast<const char*>(&key_), sizeof(key_));
  keyed += salt;
  unsigned char digest[EVP_MAX_MD_SIZE];
  TANDEM_CHECK(EVP_Digest(keyed.data(), keyed.size(), digest, nullptr, EVP_sha256(), nullptr) == 1);
  PrefixRoot root;
  std::memcpy(&root.hash, digest, sizeof(root.hash));
  std::memcpy(&root.check, digest + sizeof(root.hash), sizeof(root.check));
  return root;
}

void PrefixIndex::Reset() { key_ = XXH64(&key_, sizeof(key_), key_); }

PrefixNodeId PrefixIndex::Find(PrefixRoot root, PrefixNodeId parent,
                               std::span<const TokenId> tokens, uint64_t hash) const {
  auto found = by_hash_.find(hash);
  if (found == by_hash_.end() || !Matches(found->second, root, parent, tokens)) return kNoPrefix;
  return found->second;
}

PrefixNodeId PrefixIndex::FindOrAdd(PrefixRoot root, PrefixNodeId parent,
                                    std::span<const TokenId> tokens) {
  const uint64_t hash = HashOf(root, parent, tokens);
  auto [entry, is_new] = by_hash_.try_emplace(hash, kNoPrefix);
  if (!is_new) return Matches(entry->second, root, parent, tokens) ? entry->second : kNoPrefix;
  const PrefixNodeId node = NewNode();
  entry->second = node;
  nodes_[node] = {.hash = hash, .root = root, .parent = parent, .holders = 0};
  std::copy(tokens.begin(), tokens.end(), tokens_.begin() + size_t{block_size_} * node);
  if (parent != kNoPrefix) Hold(parent);
  return node;
}

BlockId PrefixIndex::block(PrefixNodeId node, uint32_t group) const {
  return blocks_[size_t{num_groups_} * node + group];
}

void PrefixIndex::Attach(PrefixNodeId node, uint32_t group, BlockId block) {
  BlockId& place = blocks_[size_t{num_groups_} * node + group];
  TANDEM_CHECK(place == kNoBlock) << "prefix node " << node << " has block " << place;
  place = block;
  Hold(node);
}

void PrefixIndex::Detach(PrefixNodeId node, uint32_t group) {
  BlockId& place = blocks_[size_t{num_groups_} * node + group];
  TANDEM_CHECK(place != kNoBlock) << "prefix node " << node << " has no block";
  place = kNoBlock;
  Unhold(node);
}

std::span<const TokenId> PrefixIndex::TokensOf(PrefixNodeId node) const {
  return {tokens_.data() + size_t{block_size_} * node, block_size_};
}

uint64_t PrefixIndex::HashOf(PrefixRoot root, PrefixNodeId parent,
                             std::span<const TokenId> tokens) const {
  return HashAfter(parent == kNoPrefix ? root.hash : nodes_[parent].hash, tokens);
}

uint64_t PrefixIndex::HashAfter(uint64_t parent_hash, std::span<const TokenId> tokens) const {
  TANDEM_CHECK(tokens.size() == block_size_) << tokens.size() << " tokens are not a block";
  return hash_(tokens, parent_hash);
}

bool PrefixIndex::Matches(PrefixNodeId node, PrefixRoot root, PrefixNodeId parent,
                          std::span<const TokenId> tokens) const {
  return nodes_[node].root == root && nodes_[node].parent == parent &&
         std::ranges::equal(TokensOf(node), tokens);
}

PrefixNodeId PrefixIndex::NewNode() {
  if (!free_nodes_.empty()) {
    const PrefixNodeId node = free_nodes_.back();
    free_nodes_.pop_back();
    return node;
  }
  nodes_.emplace_back();
  tokens_.resize(tokens_.size() + block_size_);
  blocks_.resize(blocks_.size() + num_groups_, kNoBlock);
  return static_cast<PrefixNodeId>(nodes_.size() - 1);
}

void PrefixIndex::Hold(PrefixNodeId node) { ++nodes_[node].holders; }

void PrefixIndex::Unhold(PrefixNodeId node) {
  while (node != kNoPrefix) {
    TANDEM_CHECK(nodes_[node].holders > 0) << "prefix node " << node << " is not held";
    if (--nodes_[node].holders > 0) return;
    by_hash_.erase(nodes_[node].hash);
    free_nodes_.push_back(node);
    node = nodes_[node].parent;
  }
}

absl::Status PrefixIndex::CheckIntegrity() const {
  if (by_hash_.size() + free_nodes_.size() != nodes_.size()) {
    return absl::InternalError(absl::StrCat("prefix index: ", by_hash_.size(), " nodes and ",
                                            free_nodes_.size(), " free are not ", nodes_.size()));
  }
  std::vector<uint32_t> holders(nodes_.size(), 0);
  for (const auto& [hash, node] : by_hash_) {
    const PrefixNodeId parent = nodes_[node].parent;
    if (nodes_[node].hash != hash || HashOf(nodes_[node].root, parent, TokensOf(node)) != hash) {
      return absl::InternalError(absl::StrCat("prefix node ", node, " is under a wrong hash"));
    }
    if (parent != kNoPrefix) ++holders[parent];
    for (uint32_t group = 0; group < num_groups_; ++group) {
      if (block(node, group) != kNoBlock) ++holders[node];
    }
  }
  for (const auto& [hash, node] : by_hash_) {
    // Pins come on top of what is counted here.
    if (nodes_[node].holders == 0 || nodes_[node].holders < holders[node]) {
      return absl::InternalError(absl::StrCat("prefix node ", node, " has ", nodes_[node].holders,
                                              " holders, at least ", holders[node], " expected"));
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem::coordinator
