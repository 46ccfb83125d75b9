#include "common/step/block_tables.h"

#include <algorithm>

namespace tandem::step {

BlockTables::BlockTables(const StepLimits& limits)
    : max_seqs_(limits.max_seqs),
      max_length_(limits.MaxTableBlocks()),
      extents_(limits.num_blocks.size() * max_seqs_),
      blocks_(extents_.size() * max_length_, kNoBlock) {}

std::span<const BlockId> BlockTables::Table(size_t group, uint32_t slot) const {
  return {blocks_.data() + Index(group, slot) * max_length_, At(group, slot).length};
}

void BlockTables::Apply(const StepDescriptor& step) {
  for (size_t group = 0; group < step.groups.size(); ++group) {
    const BlockId* appended = step.groups[group].blocks.data();
    for (size_t s = 0; s < step.sequences.size(); ++s) {
      const TableDelta& delta = step.groups[group].tables[s];
      const size_t index = Index(group, step.sequences[s].slot);
      Extent& extent = extents_[index];
      if (delta.length_before == 0) extent = {};
      BlockId* const table = blocks_.data() + index * max_length_;
      std::fill(table + extent.first_live, table + delta.first_live, kNoBlock);
      std::copy_n(appended, delta.num_appended(), table + delta.first_appended());
      appended += delta.num_appended();
      extent = {.length = delta.length_after, .first_live = delta.first_live};
    }
  }
  NoteDrawn(step);
}

void BlockTables::NoteDrawn(const StepDescriptor& step) {
  drawn_.clear();
  size_t s = 0;
  for (const RowRequest& row : step.rows) {
    if ((row.wants & kWantSample) == 0) continue;
    while (step.query_offsets[s + 1] <= row.token) ++s;
    drawn_.push_back(
        {.slot = step.sequences[s].slot, .position = step.sampling[drawn_.size()].position});
  }
}

}  // namespace tandem::step
