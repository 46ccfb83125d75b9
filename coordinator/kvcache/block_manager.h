// BlockManager: allocation, sharing and release of KV blocks for sequences, over all KV groups.
//
//   PrefixMatch match = kv.Match(tokens, hashes);         // what is already computed
//   if (kv.Start(blocks, match, match.num_tokens + 512, tokens.size())) ...  // adopt it, allocate
//                                             // the first chunk
//   kv.Grow(blocks, num_tokens)               // before each step; false: preempt a sequence
//   kv.TakeSnapshot(blocks, num_tokens)       // if the step is to keep the recurrent state there
//   kv.Commit(blocks, tokens, num_computed)   // after it: publish full blocks, leave the window
//   kv.Release(blocks)
//
// All calls on one allocation are all-or-nothing over the groups. O(1) per block. Single-threaded
// (the engine thread); outlives the SequenceBlocks that it fills.
#ifndef TANDEM_COORDINATOR_KVCACHE_BLOCK_MANAGER_H_
#define TANDEM_COORDINATOR_KVCACHE_BLOCK_MANAGER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/base/metric.h"
#include "common/kv/snapshots.h"
#include "coordinator/kvcache/block_pool.h"
#include "coordinator/kvcache/kv_config.h"
#include "coordinator/kvcache/prefix_index.h"
#include "coordinator/kvcache/sequence_blocks.h"
#include "coordinator/kvcache/snapshot_pool.h"

namespace tandem::coordinator {

// A cached prefix. Valid until the next change of the block manager.
struct PrefixMatch {
  uint32_t num_tokens = 0;  // a multiple of the block size
  // Tokens whose blocks are cached: more, if there is no snapshot of the recurrent state after
  // them.
  uint32_t num_tokens_in_blocks = 0;
  std::vector<PrefixNodeId> nodes;  // one per block
  std::optional<PrefixRoot> root;   // unset: that of no salt
  std::optional<uint64_t> missing;  // hash of the first block that is not in the cache
};

// The chained hashes of a sequence's first blocks, as far as Match has computed them.
struct PrefixHashes {
  std::string salt{};  // the cache salt, set by the owner before the first Match
  PrefixRoot root{};
  std::vector<uint64_t> blocks{};
};

// Over all groups.
struct KvCacheStats {
  int64_t total_blocks = 0;
  int64_t free_blocks = 0;
  int64_t cached_blocks = 0;
  int64_t snapshots = 0;
  int64_t cached_snapshots = 0;

  template <typename Visit>
  void ForEach(Visit visit) const {
    visit(total_blocks,
          Metric{"tandem_kv_blocks", Metric::Kind::kGauge, "KV blocks, of all KV groups together"});
    visit(free_blocks, Metric{"tandem_kv_blocks_free", Metric::Kind::kGauge,
                              "KV blocks in no sequence, cached ones included"});
    visit(cached_blocks, Metric{"tandem_kv_blocks_cached", Metric::Kind::kGauge,
                                "free KV blocks whose contents a prefix may still hit"});
    visit(snapshots, Metric{"tandem_state_snapshots", Metric::Kind::kGauge,
                            "snapshots of recurrent states that there is room for"});
    visit(cached_snapshots, Metric{"tandem_state_snapshots_cached", Metric::Kind::kGauge,
                                   "snapshots that a prefix may hit and no request loads"});
  }
};

class BlockManager {
 public:
  // `config` is valid.
  explicit BlockManager(KvCacheConfig config, PrefixIndex::HashFn hash = &PrefixIndex::XxHash);

  // The longest cached prefix of `tokens` with `hashes.salt` that leaves at least one token to
  // compute; none of no tokens. Changes only `hashes`, which caches hashes for the next try with
  // the same tokens, or more of them.
  PrefixMatch Match(std::span<const TokenId> tokens, PrefixHashes& hashes) const;
  // Begins an empty allocation: takes the blocks of `match`, allocates up to `first_tokens`, and
  // reserves the blocks for `all_tokens`, computed in steps of at most `step_tokens` (0: the size
  // of the first step). A reservation blocks new admissions; Grow ignores it. False, without
  // change, if too few blocks are free.
  bool Start(SequenceBlocks& blocks, const PrefixMatch& match, uint32_t first_tokens,
             uint32_t all_tokens, uint32_t step_tokens = 0);
  // Allocates blocks for the tokens [0, num_tokens). False, without change, if too few blocks are
  // free.
  bool Grow(SequenceBlocks& blocks, uint32_t num_tokens);
  // Whether that many blocks of every group are free and not reserved.
  bool HasSpare(uint32_t num_blocks) const;
  // Takes a snapshot for the recurrent state after the first `num_tokens`, a multiple of the block
  // size that rises from call to call. kNoSnapshot if all are in use, or there are none.
  kv::SnapshotId TakeSnapshot(SequenceBlocks& blocks, uint32_t num_tokens);
  // Takes a snapshot for the recurrent state before the drafts of a step, which nobody else may
  // hit: saved_state(). False if all are in use, or there are none.
  bool SaveState(SequenceBlocks& blocks);
  // That step is computed and committed. RestoreState: the next step loads the snapshot, since a
  // draft was wrong.
  void RestoreState(SequenceBlocks& blocks);
  void DropSavedState(SequenceBlocks& blocks);
  // Whether one that is not in use can be taken.
  bool HasFreeSnapshot() const;
  // The first `num_computed` of `tokens` have their K and V in the blocks: full blocks and taken
  // snapshots become visible to other sequences, and blocks before the window of all later tokens
  // are released. Blocks of what is not among `tokens`, such as drafts accepted just now, are not
  // published; a later call may.
  void Commit(SequenceBlocks& blocks, std::span<const TokenId> tokens, uint32_t num_computed);
  void Release(SequenceBlocks& blocks);
  // Of the sequence's tokens, those that a prompt which begins with them hits now, by what the
  // sequence has found or published itself: as long as nothing of it is evicted.
  uint32_t HitTokens(const SequenceBlocks& blocks) const;
  // The hash of the second block after them, as in PrefixHashes; none if `tokens` do not fill it,
  // or if it will not be published.
  std::optional<uint64_t> HashTwoAhead(const SequenceBlocks& blocks,
                                       std::span<const TokenId> tokens) const;
  // The same of the prompt `tokens`, to which Match has just given `match` and `hashes`; none if
  // that block leaves no token to compute.
  std::optional<uint64_t> HashTwoAhead(const PrefixMatch& match, std::span<const TokenId> tokens,
                                       const PrefixHashes& hashes) const;
  // Of the sequence's first tokens, those whose blocks others hold too: they stay in the prefix
  // cache when it releases them. By the first group without a window; 0 if there is none.
  uint32_t SharedTokens(const SequenceBlocks& blocks) const;
  // The pages' contents are lost: empties the prefix cache. REQUIRES: all allocations released.
  void Forget();
  // No prefix is hit any more that was computed, or begun, before. O(blocks).
  void ResetPrefixCache();

  const KvCacheConfig& config() const { return config_; }
  KvCacheStats Stats() const;
  // Total number of releases and of reservations that lapsed. While it is unchanged and the
  // match's missing block is not cached, an allocation that did not fit is not worth a retry.
  uint64_t num_returns() const;
  // Whether the block of PrefixMatch::missing is now cached.
  bool IsCached(uint64_t hash) const { return index_.Has(hash); }

  // `live`: every existing allocation. INTERNAL naming the inconsistency.
  absl::Status CheckIntegrity(std::span<const SequenceBlocks* const> live) const;
  // One allocation before the step that computes [num_computed, num_tokens), or after the previous
  // step: every position that the step reads or writes has a block, and blocks that no later
  // position reads were released.
  absl::Status CheckWindow(const SequenceBlocks& blocks, uint32_t num_computed,
                           uint32_t num_tokens) const;

 private:
  uint32_t num_groups() const { return static_cast<uint32_t>(config_.groups.size()); }
  void Publish(SequenceBlocks& blocks, std::span<const TokenId> tokens, uint32_t num_computed);
  void PublishBlock(SequenceBlocks& blocks, PrefixNodeId node);
  // The blocks that Start would take from the free list of `group`, now and later.
  uint32_t BlocksToStart(uint32_t group, const PrefixMatch& match, uint32_t first_tokens,
                         const BlockTable& table) const;
  // Updates the reservation of a table to the blocks it holds.
  void UpdateReserved(uint32_t group, BlockTable& table);
  void LeaveWindow(SequenceBlocks& blocks, uint32_t num_computed);
  absl::Status CheckTables(uint32_t group, std::span<const SequenceBlocks* const> live) const;
  absl::Status CheckPrefixes() const;

  const KvCacheConfig config_;
  PrefixIndex index_;
  std::optional<SnapshotPool> snapshots_;
  std::vector<std::unique_ptr<BlockPool>> pools_;  // one per group
  std::vector<uint32_t> reserved_blocks_;          // by group, of all tables
  uint64_t num_lapsed_ = 0;                        // reservations
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_KVCACHE_BLOCK_MANAGER_H_
