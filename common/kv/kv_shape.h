// KvShape: the memory cost of one rank's KV groups, and the number of blocks of each.
//
// Full-attention groups have n blocks each, n being given by memory or by the operator. A group
// with a sliding window never has more than its sequences can use: the blocks spanned by the
// windows of `max_num_seqs` sequences and one step's tokens, and the same number again, so that
// released blocks stay cached for prefix hits. Snapshots of recurrent states come on top. Plain
// data, thread-safe.
#ifndef TANDEM_COMMON_KV_KV_SHAPE_H_
#define TANDEM_COMMON_KV_KV_SHAPE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/config/worker_config.h"
#include "common/model/shard.h"
#include "common/model/spec.h"

namespace tandem::kv {

struct KvGroupShape {
  uint32_t window_tokens = 0;    // 0: full attention
  uint64_t bytes_per_block = 0;  // of this rank, all layers of the group
  uint64_t most_blocks = 0;      // upper bound on useful blocks
  bool operator==(const KvGroupShape&) const = default;
};

struct KvShape {
  uint32_t block_size = 0;
  std::vector<KvGroupShape> groups;
  uint32_t snapshot_interval = 0;  // tokens; 0: no snapshots
  uint64_t snapshot_bytes = 0;     // of one, on this rank
  bool operator==(const KvShape&) const = default;

  // If full-attention groups have `n` blocks.
  std::vector<uint32_t> NumBlocks(uint64_t n) const;
  // Likewise.
  uint64_t NumSnapshots(uint64_t n) const;
  // Of blocks and snapshots. Saturates at 2^64 - 1.
  uint64_t Bytes(uint64_t n) const;
  // "62 blocks", "62 blocks and 8 snapshots of recurrent states".
  std::string CountText(uint64_t n) const;
  // "62 blocks of 16 tokens, 160 B each; 12 for a window of 128 tokens, 80 B each", "62 blocks of
  // 16 tokens, 160 B each; 8 snapshots of a recurrent state, 2 MiB each".
  std::string Text(uint64_t n) const;
};

// REQUIRES: the configuration's max_model_len is resolved.
KvShape MakeKvShape(const model::ModelSpec& spec, const model::ShardPlan& plan,
                    const config::WorkerConfig& config);

// Adds what a draft model keeps in the blocks of the group with full attention: its layers' K and V
// of the same tokens. `plan` is the draft model's.
void AddDraftModel(const model::ModelSpec& draft, const model::ShardPlan& plan,
                   const config::WorkerConfig& config, KvShape& shape);

// Of all `ranks`; saturates.
uint64_t TotalBytes(std::span<const KvShape> ranks, uint64_t n);

// The largest n with which the ranks together take at most `bytes`; slots of a group are int32.
// Bounded by what the groups can use. 0 if not one block fits.
uint64_t MostBlocks(std::span<const KvShape> ranks, uint64_t bytes);

// The most blocks per group whose slots an int32 addresses.
uint64_t MostAddressableBlocks(uint32_t block_size);

}  // namespace tandem::kv

#endif  // TANDEM_COMMON_KV_KV_SHAPE_H_
