#include "coordinator/kvcache/block_manager.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"

namespace tandem::coordinator {
namespace {

// Upper bound on the additional blocks that a table with blocks for `size` will hold for the tokens
// known at the start: a window that has reached the last of them needs no more.
uint32_t StillToCome(const BlockTable& table, uint32_t size) {
  const uint32_t live = size - table.first_live;
  return table.peak_blocks <= live || table.known_blocks <= size
             ? 0
             : std::min(table.peak_blocks - live, table.known_blocks - size);
}

uint64_t RandomKey() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

BlockManager::BlockManager(KvCacheConfig config, PrefixIndex::HashFn hash)
    : config_(std::move(config)),
      // Snapshots are its last group.
      index_(config_.block_size, static_cast<uint32_t>(config_.groups.size()) + 1,
             config_.prefix_hash_key.value_or(RandomKey()), hash) {
  TANDEM_CHECK_OK(config_.Validate());
  if (config_.snapshots.has_value()) {
    snapshots_.emplace(config_.snapshots->num_snapshots, index_, num_groups());
  }
  for (uint32_t group = 0; group < num_groups(); ++group) {
    pools_.push_back(std::make_unique<BlockPool>(config_.groups[group].num_blocks,
                                                 [this, group](BlockId, PrefixNodeId node) {
                                                   if (snapshots_.has_value())
                                                     snapshots_->Evict(node);
                                                   index_.Detach(node, group);
                                                 }));
  }
  reserved_blocks_.resize(num_groups(), 0);
}

PrefixMatch BlockManager::Match(std::span<const TokenId> tokens, PrefixHashes& hashes) const {
  const PrefixRoot root = index_.Root(hashes.salt);
  PrefixMatch match;
  match.root = root;
  if (!config_.enable_prefix_cache || tokens.empty()) return match;
  if (hashes.root != root) hashes.blocks.clear();
  hashes.root = root;
  const uint32_t most_blocks = static_cast<uint32_t>(tokens.size() - 1) / config_.block_size;
  std::vector<uint32_t> run(num_groups(), 0);  // consecutive blocks that end with the last node
  uint32_t hit_blocks = 0;
  PrefixNodeId node = kNoPrefix;
  for (uint32_t block = 0; block < most_blocks; ++block) {
    const auto block_tokens =
        tokens.subspan(size_t{block} * config_.block_size, config_.block_size);
    if (block == hashes.blocks.size()) {
      hashes.blocks.push_back(index_.HashOf(root, node, block_tokens));
    }
    const uint64_t hash = hashes.blocks[block];
    node = index_.Find(root, node, block_tokens, hash);
    if (node == kNoPrefix) {
      match.missing = hash;
      break;
    }
    match.nodes.push_back(node);
    bool is_hit = true;
    for (uint32_t group = 0; group < num_groups(); ++group) {
      run[group] = index_.block(node, group) == kNoBlock ? 0 : run[group] + 1;
      const uint32_t first_live =
          config_.FirstLiveBlock(config_.groups[group], (block + 1) * config_.block_size);
      is_hit &= run[group] >= block + 1 - first_live;
    }
    if (!is_hit) continue;
    match.num_tokens_in_blocks = (block + 1) * config_.block_size;
    if (!snapshots_.has_value() || snapshots_->Has(node)) hit_blocks = block + 1;
  }
  match.nodes.resize(hit_blocks);
  match.num_tokens = hit_blocks * config_.block_size;
  return match;
}

uint32_t BlockManager::BlocksToStart(uint32_t group, const PrefixMatch& match,
                                     uint32_t first_tokens, const BlockTable& table) const {
  const auto num_hits = static_cast<uint32_t>(match.nodes.size());
  uint32_t free_hits = 0;  // a hit on a free block removes it from the free list too
  for (uint32_t i = table.first_live; i < num_hits; ++i) {
    if (!pools_[group]->in_use(index_.block(match.nodes[i], group))) ++free_hits;
  }
  const uint32_t now = config_.BlocksFor(first_tokens) - num_hits;
  return free_hits + std::max(now, StillToCome(table, num_hits));
}

bool BlockManager::Start(SequenceBlocks& blocks, const PrefixMatch& match, uint32_t first_tokens,
                         uint32_t all_tokens, uint32_t step_tokens) {
  TANDEM_CHECK(blocks.empty()) << "a sequence starts twice";
  step_tokens = std::max(step_tokens, first_tokens - match.num_tokens);
  std::vector<BlockTable> tables(num_groups());
  for (uint32_t group = 0; group < num_groups(); ++group) {
    const KvGroup& spec = config_.groups[group];
    tables[group].known_blocks = config_.BlocksFor(all_tokens);
    tables[group].peak_blocks = config_.MostBlocks(spec, all_tokens, step_tokens);
    tables[group].first_live = config_.FirstLiveBlock(spec, match.num_tokens);
    const uint64_t wanted = BlocksToStart(group, match, first_tokens, tables[group]);
    if (wanted + reserved_blocks_[group] > pools_[group]->free_blocks()) return false;
  }
  const auto num_hits = static_cast<uint32_t>(match.nodes.size());
  for (uint32_t group = 0; group < num_groups(); ++group) {
    BlockTable& table = tables[group];
    table.blocks.resize(num_hits);
    for (uint32_t i = table.first_live; i < num_hits; ++i) {
      table.blocks[i] = pools_[group]->Share(index_.block(match.nodes[i], group));
    }
  }
  if (num_hits > 0) {
    blocks.published_ = PrefixPin(index_, match.nodes.back());
    if (snapshots_.has_value()) blocks.loaded_ = snapshots_->Share(match.nodes.back());
  }
  blocks.root_ = match.root.value_or(index_.Root());
  blocks.num_published_ = blocks.num_hit_blocks_ = num_hits;
  blocks.hit_hash_ = num_hits > 0 ? index_.hash_at(match.nodes.back()) : blocks.root_.hash;
  blocks.tables_ = std::move(tables);
  TANDEM_CHECK(Grow(blocks, first_tokens)) << "blocks that were counted are not there";
  return true;
}

void BlockManager::UpdateReserved(uint32_t group, BlockTable& table) {
  const uint32_t reserved = StillToCome(table, static_cast<uint32_t>(table.blocks.size()));
  reserved_blocks_[group] += reserved - table.reserved_blocks;  // modular; the sum does not wrap
  table.reserved_blocks = reserved;
}

bool BlockManager::Grow(SequenceBlocks& blocks, uint32_t num_tokens) {
  const size_t wanted = config_.BlocksFor(num_tokens);
  for (uint32_t group = 0; group < num_groups(); ++group) {
    const size_t have = blocks.tables_[group].blocks.size();
    if (wanted > have && wanted - have > pools_[group]->free_blocks()) return false;
  }
  for (uint32_t group = 0; group < num_groups(); ++group) {
    BlockTable& table = blocks.tables_[group];
    while (table.blocks.size() < wanted) table.blocks.push_back(pools_[group]->Allocate());
    UpdateReserved(group, table);
  }
  return true;
}

kv::SnapshotId BlockManager::TakeSnapshot(SequenceBlocks& blocks, uint32_t num_tokens) {
  TANDEM_CHECK(num_tokens % config_.block_size == 0 &&
               (blocks.pending_.empty() || blocks.pending_.back().num_tokens < num_tokens))
      << "a snapshot after " << num_tokens << " tokens";
  if (!snapshots_.has_value() || !config_.enable_prefix_cache) return kv::kNoSnapshot;
  BlockRef snapshot = snapshots_->Take();
  if (!snapshot) return kv::kNoSnapshot;
  blocks.pending_.push_back({.snapshot = std::move(snapshot), .num_tokens = num_tokens});
  return blocks.pending_.back().snapshot.id();
}

bool BlockManager::SaveState(SequenceBlocks& blocks) {
  TANDEM_CHECK(!blocks.saved_) << "the state before the drafts of a step in flight";
  if (snapshots_.has_value()) blocks.saved_ = snapshots_->Take();
  return static_cast<bool>(blocks.saved_);
}

void BlockManager::RestoreState(SequenceBlocks& blocks) {
  TANDEM_CHECK(blocks.saved_ && !blocks.loaded_);
  blocks.loaded_ = std::move(blocks.saved_);
}

void BlockManager::DropSavedState(SequenceBlocks& blocks) { blocks.saved_.Reset(); }

bool BlockManager::HasFreeSnapshot() const {
  return snapshots_.has_value() && snapshots_->num_free() > 0;
}

bool BlockManager::HasSpare(uint32_t num_blocks) const {
  for (uint32_t group = 0; group < num_groups(); ++group) {
    if (pools_[group]->free_blocks() < uint64_t{num_blocks} + reserved_blocks_[group]) return false;
  }
  return true;
}

void BlockManager::Commit(SequenceBlocks& blocks, std::span<const TokenId> tokens,
                          uint32_t num_computed) {
  blocks.loaded_.Reset();
  if (config_.enable_prefix_cache) {
    Publish(blocks, tokens, std::min(num_computed, static_cast<uint32_t>(tokens.size())));
  }
  std::erase_if(blocks.pending_,
                [&](const PendingSnapshot& pending) { return pending.num_tokens <= num_computed; });
  LeaveWindow(blocks, num_computed);
}

void BlockManager::Publish(SequenceBlocks& blocks, std::span<const TokenId> tokens,
                           uint32_t num_computed) {
  const uint32_t num_full = num_computed / config_.block_size;
  PrefixNodeId last_hit = kNoPrefix;
  for (; blocks.can_publish_ && blocks.num_published_ < num_full; ++blocks.num_published_) {
    const size_t begin = size_t{blocks.num_published_} * config_.block_size;
    const PrefixNodeId node = index_.FindOrAdd(blocks.root_, blocks.published_.node(),
                                               tokens.subspan(begin, config_.block_size));
    if (node == kNoPrefix) {
      blocks.can_publish_ = false;
      break;
    }
    blocks.published_ = PrefixPin(index_, node);
    PublishBlock(blocks, node);
    if (snapshots_.has_value() && !snapshots_->Has(node)) continue;
    blocks.num_hit_blocks_ = blocks.num_published_ + 1;
    last_hit = node;
  }
  if (last_hit != kNoPrefix) blocks.hit_hash_ = index_.hash_at(last_hit);
}

void BlockManager::PublishBlock(SequenceBlocks& blocks, PrefixNodeId node) {
  for (uint32_t group = 0; group < num_groups(); ++group) {
    const BlockRef& block = blocks.tables_[group].blocks[blocks.num_published_];
    // If another sequence computed the same block first, this one stays private.
    if (!block || index_.block(node, group) != kNoBlock) continue;
    index_.Attach(node, group, block.id());
    pools_[group]->SetContents(block.id(), node);
  }
  const uint32_t num_tokens = (blocks.num_published_ + 1) * config_.block_size;
  for (const PendingSnapshot& pending : blocks.pending_) {
    if (pending.num_tokens == num_tokens) snapshots_->Publish(node, pending.snapshot);
  }
}

void BlockManager::LeaveWindow(SequenceBlocks& blocks, uint32_t num_computed) {
  for (uint32_t group = 0; group < num_groups(); ++group) {
    BlockTable& table = blocks.tables_[group];
    const uint32_t first_live = config_.FirstLiveBlock(config_.groups[group], num_computed);
    while (table.first_live < first_live && table.first_live < table.blocks.size()) {
      table.blocks[table.first_live++].Reset();
    }
    UpdateReserved(group, table);
  }
}

void BlockManager::Release(SequenceBlocks& blocks) {
  // The end of a prefix is less likely to be hit than its beginning, so it is released, and reused,
  // first.
  for (uint32_t group = 0; group < blocks.tables_.size(); ++group) {
    BlockTable& table = blocks.tables_[group];
    while (!table.blocks.empty()) table.blocks.pop_back();
    reserved_blocks_[group] -= table.reserved_blocks;
    if (table.reserved_blocks > 0) ++num_lapsed_;
  }
  blocks = SequenceBlocks();
}

uint32_t BlockManager::HitTokens(const SequenceBlocks& blocks) const {
  return blocks.num_hit_blocks_ * config_.block_size;
}

std::optional<uint64_t> BlockManager::HashTwoAhead(const SequenceBlocks& blocks,
                                                   std::span<const TokenId> tokens) const {
  const size_t begin = HitTokens(blocks), block_size = config_.block_size;
  const bool is_full = begin + 2 * block_size <= tokens.size();
  if (!config_.enable_prefix_cache || !blocks.can_publish_ || !is_full) return std::nullopt;
  const uint64_t next = index_.HashAfter(blocks.hit_hash_, tokens.subspan(begin, block_size));
  return index_.HashAfter(next, tokens.subspan(begin + block_size, block_size));
}

std::optional<uint64_t> BlockManager::HashTwoAhead(const PrefixMatch& match,
                                                   std::span<const TokenId> tokens,
                                                   const PrefixHashes& hashes) const {
  const size_t block_size = config_.block_size, second = match.num_tokens / block_size + 1;
  const bool is_full = match.num_tokens + 2 * block_size < tokens.size();
  if (!config_.enable_prefix_cache || !is_full) return std::nullopt;
  if (second < hashes.blocks.size()) return hashes.blocks[second];
  return index_.HashAfter(hashes.blocks.back(), tokens.subspan(second * block_size, block_size));
}

uint32_t BlockManager::SharedTokens(const SequenceBlocks& blocks) const {
  for (uint32_t group = 0; group < blocks.tables_.size(); ++group) {
    if (config_.groups[group].window_tokens != 0) continue;
    // Who adopts a block adopts those before it.
    const std::vector<BlockRef>& table = blocks.tables_[group].blocks;
    const auto shared_end = std::ranges::partition_point(
        table, [&](const BlockRef& block) { return pools_[group]->owners(block.id()) > 1; });
    return static_cast<uint32_t>(shared_end - table.begin()) * config_.block_size;
  }
  return 0;
}

void BlockManager::Forget() {
  for (const auto& pool : pools_) pool->Forget();
  if (snapshots_.has_value()) snapshots_->Forget();
  TANDEM_CHECK(index_.num_nodes() == 0) << index_.num_nodes() << " prefixes without a block";
}

void BlockManager::ResetPrefixCache() {
  index_.Reset();
  for (const auto& pool : pools_) pool->EvictAll();
  if (snapshots_.has_value()) snapshots_->EvictAll();
}

KvCacheStats BlockManager::Stats() const {
  KvCacheStats stats;
  for (const auto& pool : pools_) {
    stats.total_blocks += pool->total_blocks();
    stats.free_blocks += pool->free_blocks();
    stats.cached_blocks += pool->cached_blocks();
  }
  if (snapshots_.has_value()) {
    stats.snapshots = snapshots_->num_snapshots();
    stats.cached_snapshots = snapshots_->num_cached();
  }
  return stats;
}

uint64_t BlockManager::num_returns() const {
  uint64_t sum = num_lapsed_;
  for (const auto& pool : pools_) sum += pool->num_returns();
  return sum;
}

absl::Status BlockManager::CheckIntegrity(std::span<const SequenceBlocks* const> live) const {
  for (uint32_t group = 0; group < num_groups(); ++group) {
    const std::string name = absl::StrCat("KV group ", group);
    TANDEM_RETURN_IF_ERROR(Annotate(pools_[group]->CheckIntegrity(), name));
    TANDEM_RETURN_IF_ERROR(Annotate(CheckTables(group, live), name));
  }
  if (snapshots_.has_value()) TANDEM_RETURN_IF_ERROR(snapshots_->CheckIntegrity(live));
  return CheckPrefixes();
}

absl::Status BlockManager::CheckTables(uint32_t group,
                                       std::span<const SequenceBlocks* const> live) const {
  const BlockPool& pool = *pools_[group];
  std::vector<uint32_t> owners(pool.total_blocks(), 0);
  uint32_t reserved = 0;
  for (const SequenceBlocks* blocks : live) {
    if (blocks->empty()) continue;
    const BlockTable& table = blocks->tables()[group];
    reserved += table.reserved_blocks;
    for (uint32_t i = 0; i < table.blocks.size(); ++i) {
      if (static_cast<bool>(table.blocks[i]) != (i >= table.first_live)) {
        return absl::InternalError(
            absl::StrCat("block ", i, " of a table that lives from ", table.first_live));
      }
      if (table.blocks[i]) ++owners[table.blocks[i].id()];
    }
  }
  for (uint32_t block = 0; block < pool.total_blocks(); ++block) {
    const uint32_t counted = pool.owners(static_cast<BlockId>(block));
    if (owners[block] == counted) continue;
    return absl::InternalError(absl::StrCat("block ", block, " is in ", owners[block],
                                            " tables but has ", counted, " owners"));
  }
  if (reserved != reserved_blocks_[group]) {
    return absl::InternalError(absl::StrCat("tables reserve ", reserved, " blocks, ",
                                            reserved_blocks_[group], " counted"));
  }
  return absl::OkStatus();
}

absl::Status BlockManager::CheckWindow(const SequenceBlocks& blocks, uint32_t num_computed,
                                       uint32_t num_tokens) const {
  for (uint32_t group = 0; group < num_groups(); ++group) {
    const BlockTable& table = blocks.tables()[group];
    const uint32_t first_live = config_.FirstLiveBlock(config_.groups[group], num_computed);
    if (table.first_live == first_live && table.blocks.size() >= config_.BlocksFor(num_tokens)) {
      continue;
    }
    return absl::InternalError(absl::StrCat(
        "KV group ", group, ": a table of ", table.blocks.size(), " blocks lives from block ",
        table.first_live, "; positions ", num_computed, " to ", num_tokens, " need it from block ",
        first_live, " to ", config_.BlocksFor(num_tokens)));
  }
  return absl::OkStatus();
}

absl::Status BlockManager::CheckPrefixes() const {
  TANDEM_RETURN_IF_ERROR(index_.CheckIntegrity());
  for (uint32_t group = 0; group < num_groups(); ++group) {
    for (uint32_t block = 0; block < pools_[group]->total_blocks(); ++block) {
      const PrefixNodeId node = pools_[group]->contents(static_cast<BlockId>(block));
      if (node != kNoPrefix && index_.block(node, group) != static_cast<BlockId>(block)) {
        return absl::InternalError(absl::StrCat("KV group ", group, ": block ", block,
                                                " says prefix node ", node, ", which has block ",
                                                index_.block(node, group)));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem::coordinator
