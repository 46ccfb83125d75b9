#include "coordinator/kvcache/snapshot_pool.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace tandem::coordinator {

SnapshotPool::SnapshotPool(uint32_t num_snapshots, PrefixIndex& index, uint32_t group)
    : index_(index),
      group_(group),
      pool_(num_snapshots, [this](BlockId, PrefixNodeId node) { index_.Detach(node, group_); }) {}

void SnapshotPool::Publish(PrefixNodeId node, const BlockRef& snapshot) {
  if (Has(node)) return;
  index_.Attach(node, group_, snapshot.id());
  pool_.SetContents(snapshot.id(), node);
}

void SnapshotPool::Evict(PrefixNodeId node) {
  const BlockId snapshot = index_.block(node, group_);
  if (snapshot != kNoBlock && !pool_.in_use(snapshot)) pool_.Evict(snapshot);
}

absl::Status SnapshotPool::CheckIntegrity(std::span<const SequenceBlocks* const> live) const {
  TANDEM_RETURN_IF_ERROR(pool_.CheckIntegrity());
  std::vector<uint32_t> owners(num_snapshots(), 0);
  for (const SequenceBlocks* blocks : live) {
    if (blocks->loaded_snapshot() != kNoBlock) ++owners[blocks->loaded_snapshot()];
    if (blocks->saved_state() != kNoBlock) ++owners[blocks->saved_state()];
    for (const PendingSnapshot& pending : blocks->pending_snapshots()) {
      ++owners[pending.snapshot.id()];
    }
  }
  for (uint32_t i = 0; i < num_snapshots(); ++i) {
    const auto id = static_cast<BlockId>(i);
    if (owners[i] != pool_.owners(id)) {
      return absl::InternalError(absl::StrCat("snapshot ", i, " is in ", owners[i],
                                              " sequences but has ", pool_.owners(id), " owners"));
    }
    const PrefixNodeId node = pool_.contents(id);
    if (node != kNoPrefix && index_.block(node, group_) != id) {
      return absl::InternalError(absl::StrCat("snapshot ", i, " says prefix node ", node,
                                              ", which has snapshot ", index_.block(node, group_)));
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem::coordinator
