#include "common/kv/kv_shape.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/checked_size.h"
#include "common/kv/blocks.h"
#include "common/kv/snapshots.h"
#include "common/model/human_bytes.h"
#include "common/model/kv_bytes.h"
#include "common/model/state_bytes.h"

namespace tandem::kv {
namespace {

// Released prefix blocks kept cached, relative to the blocks that sequences need.
constexpr uint64_t kRoomForHits = 2;

// A sequence that computes c tokens touches W - 1 + c of them in a row, which begin anywhere in a
// block: at most ceil((W - 1) / b) + 1 + ceil((c - 1) / b) blocks of b. Over all sequences of a
// step the last terms come to no more than one each and ceil(T / b).
uint64_t MostWindowedBlocks(uint32_t window_tokens, const config::WorkerConfig& config) {
  const uint32_t block = config.cache.block_size;
  const uint64_t seqs = config.limits.max_num_seqs;
  const uint64_t windows = seqs * (BlocksFor(uint64_t{window_tokens} - 1, block) + 2) +
                           BlocksFor(config.limits.max_num_batched_tokens, block);
  const uint64_t most = seqs * BlocksFor(config.model.spec.max_model_len, block);
  return kRoomForHits * std::min(windows, most);
}

}  // namespace

uint64_t MostAddressableBlocks(uint32_t block_size) {
  return static_cast<uint64_t>(std::numeric_limits<int32_t>::max()) / block_size;
}

KvShape MakeKvShape(const model::ModelSpec& spec, const model::ShardPlan& plan,
                    const config::WorkerConfig& config) {
  KvShape shape;
  shape.block_size = config.cache.block_size;
  const uint64_t addressable = MostAddressableBlocks(shape.block_size);
  for (const model::KvGroupSpec& group : spec.kv_groups) {
    const uint64_t most =
        group.window_tokens == 0 ? addressable : MostWindowedBlocks(group.window_tokens, config);
    shape.groups.push_back(
        {.window_tokens = group.window_tokens,
         .bytes_per_block = model::KvBytesPerToken(spec, plan, group, config.cache.kv_cache_type) *
                            uint64_t{shape.block_size},
         .most_blocks = std::min(most, addressable)});
  }
  shape.snapshot_interval = config.cache.state_snapshot_interval;
  if (shape.snapshot_interval > 0) {
    shape.snapshot_bytes = model::StateBytesPerSequence(spec, plan);
  }
  return shape;
}

void AddDraftModel(const model::ModelSpec& draft, const model::ShardPlan& plan,
                   const config::WorkerConfig& config, KvShape& shape) {
  const auto full = std::ranges::find(shape.groups, 0u, &KvGroupShape::window_tokens);
  TANDEM_CHECK(full != shape.groups.end()) << "no group with full attention";
  full->bytes_per_block += model::KvBytesPerToken(draft, plan, config.cache.kv_cache_type) *
                           uint64_t{config.cache.block_size};
}

std::vector<uint32_t> KvShape::NumBlocks(uint64_t n) const {
  std::vector<uint32_t> blocks;
  for (const KvGroupShape& group : groups) {
    blocks.push_back(static_cast<uint32_t>(std::min(n, group.most_blocks)));
  }
  return blocks;
}

uint64_t KvShape::NumSnapshots(uint64_t n) const {
  return kv::NumSnapshots(n, snapshot_interval, block_size);
}

uint64_t KvShape::Bytes(uint64_t n) const {
  CheckedSize sum = CheckedSize(NumSnapshots(n)) * snapshot_bytes;
  for (const KvGroupShape& group : groups) {
    sum += CheckedSize(std::min(n, group.most_blocks)) * group.bytes_per_block;
  }
  return sum.value().value_or(std::numeric_limits<uint64_t>::max());
}

std::string KvShape::CountText(uint64_t n) const {
  std::string text = absl::StrCat(n, n == 1 ? " block" : " blocks");
  if (const uint64_t snapshots = NumSnapshots(n); snapshots > 0) {
    absl::StrAppend(&text, " and ", snapshots, snapshots == 1 ? " snapshot" : " snapshots",
                    " of recurrent states");
  }
  return text;
}

std::string KvShape::Text(uint64_t n) const {
  std::string text;
  const std::vector<uint32_t> blocks = NumBlocks(n);
  for (size_t i = 0; i < groups.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "; ", blocks[i]);
    if (i == 0) absl::StrAppend(&text, " blocks of ", block_size, " tokens");
    if (groups[i].window_tokens > 0) {
      absl::StrAppend(&text, " for a window of ", groups[i].window_tokens, " tokens");
    }
    absl::StrAppend(&text, ", ", model::HumanBytes(groups[i].bytes_per_block), " each");
  }
  if (const uint64_t snapshots = NumSnapshots(n); snapshots > 0) {
    absl::StrAppend(&text, "; ", snapshots, snapshots == 1 ? " snapshot" : " snapshots",
                    " of a recurrent state, ", model::HumanBytes(snapshot_bytes), " each");
  }
  return text;
}

uint64_t TotalBytes(std::span<const KvShape> ranks, uint64_t n) {
  CheckedSize sum = 0;
  for (const KvShape& rank : ranks) sum += rank.Bytes(n);
  return sum.value().value_or(std::numeric_limits<uint64_t>::max());
}

uint64_t MostBlocks(std::span<const KvShape> ranks, uint64_t bytes) {
  uint64_t most = 0;
  for (const KvShape& rank : ranks) {
    for (const KvGroupShape& group : rank.groups) most = std::max(most, group.most_blocks);
  }
  uint64_t fits = 0;  // the answer is in [fits, most]
  while (fits < most) {
    const uint64_t middle = most - (most - fits) / 2;
    if (TotalBytes(ranks, middle) <= bytes) {
      fits = middle;
    } else {
      most = middle - 1;
    }
  }
  return fits;
}

}  // namespace tandem::kv
