// BlockTables: what a receiver of steps keeps of the earlier ones of an epoch: block tables, one
// per KV group and sequence slot, and for whom the last step draws tokens. A step carries changes
// of tables and may refer to those tokens; Validate checks it against what is here, and Apply then
// makes the change. So the steps of an epoch, applied in order from its start, give the same tables
// on every receiver. Single-threaded.
#ifndef TANDEM_COMMON_STEP_BLOCK_TABLES_H_
#define TANDEM_COMMON_STEP_BLOCK_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/step/descriptor.h"

namespace tandem::step {

// A token that a step draws.
struct DrawnToken {
  uint32_t slot = 0;      // of its sequence
  uint64_t position = 0;  // where it will stand
};

class BlockTables {
 public:
  BlockTables() = default;
  // All tables are empty.
  explicit BlockTables(const StepLimits& limits);

  // The most blocks that one table holds: those of max_model_len tokens.
  uint32_t max_length() const { return max_length_; }
  // kNoBlock before `first_live`, then blocks.
  std::span<const BlockId> Table(size_t group, uint32_t slot) const;
  uint32_t first_live(size_t group, uint32_t slot) const { return At(group, slot).first_live; }

  // By the last step: one per entry of its `sampling`. None at the start of the epoch.
  std::span<const DrawnToken> drawn() const { return drawn_; }

  // REQUIRES: Validate(step, limits, *this) is OK.
  void Apply(const StepDescriptor& step);

 private:
  struct Extent {
    uint32_t length = 0;
    uint32_t first_live = 0;
  };

  void NoteDrawn(const StepDescriptor& step);
  size_t Index(size_t group, uint32_t slot) const { return group * max_seqs_ + slot; }
  const Extent& At(size_t group, uint32_t slot) const { return extents_[Index(group, slot)]; }

  uint32_t max_seqs_ = 0;
  uint32_t max_length_ = 0;
  std::vector<Extent> extents_;  // (groups, max_seqs)
  std::vector<BlockId> blocks_;  // (groups, max_seqs, max_length)
  std::vector<DrawnToken> drawn_;
};

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_BLOCK_TABLES_H_
