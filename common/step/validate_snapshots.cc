#include "common/step/validate_snapshots.h"

#include <vector>

#include "common/base/status.h"
#include "common/kv/snapshots.h"
#include "common/step/invalid.h"

namespace tandem::step {
namespace {

// The snapshots of recurrent states that the step reads and writes: none is both, or written twice.
class SnapshotCheck {
 public:
  SnapshotCheck(const StepDescriptor& step, const StepLimits& limits)
      : step_(step),
        limits_(limits),
        num_(limits.num_snapshots.value_or(0)),
        loaded_(num_),
        saved_(num_) {}

  absl::Status Run() {
    for (size_t s = 0; s < step_.sequences.size(); ++s) {
      TANDEM_RETURN_IF_ERROR(CheckLoad(s));
      TANDEM_RETURN_IF_ERROR(CheckSave(s));
    }
    for (uint32_t id = 0; id < num_; ++id) {
      if (loaded_[id] && saved_[id]) return Invalid("snapshot ", id, " is loaded and saved");
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckId(size_t s, kv::SnapshotId id) const {
    if (id >= 0 && static_cast<uint32_t>(id) < num_) return absl::OkStatus();
    return Invalid("sequence ", s, " names snapshot ", id, ", there are ", num_);
  }

  absl::Status CheckLoad(size_t s) {
    const SequenceEntry& seq = step_.sequences[s];
    const uint32_t first = seq.context_len - seq.query_len;
    if (seq.load_snapshot == kv::kNoSnapshot) {
      if (!limits_.num_snapshots.has_value() || first == 0) return absl::OkStatus();
      if (step_.groups[0].tables[s].length_before > 0) return absl::OkStatus();
      return Invalid("sequence ", s, " begins at position ", first,
                     ", which needs a snapshot of its recurrent state");
    }
    TANDEM_RETURN_IF_ERROR(CheckId(s, seq.load_snapshot));
    if (first == 0) return Invalid("sequence ", s, " loads a snapshot at position 0");
    loaded_[static_cast<size_t>(seq.load_snapshot)] = true;
    return absl::OkStatus();
  }

  absl::Status CheckSave(size_t s) {
    const SequenceEntry& seq = step_.sequences[s];
    const bool saves = seq.save_snapshot != kv::kNoSnapshot;
    if (saves != (seq.save_after > 0) || seq.save_after > seq.query_len) {
      return Invalid("sequence ", s, " of ", seq.query_len, " tokens saves snapshot ",
                     seq.save_snapshot, " after ", seq.save_after);
    }
    if (!saves) return absl::OkStatus();
    TANDEM_RETURN_IF_ERROR(CheckId(s, seq.save_snapshot));
    const auto id = static_cast<size_t>(seq.save_snapshot);
    if (saved_[id]) return Invalid("snapshot ", id, " is saved twice");
    saved_[id] = true;
    return absl::OkStatus();
  }

  const StepDescriptor& step_;
  const StepLimits& limits_;
  const uint32_t num_;
  std::vector<bool> loaded_, saved_;
};

}  // namespace

absl::Status ValidateSnapshots(const StepDescriptor& step, const StepLimits& limits) {
  return SnapshotCheck(step, limits).Run();
}

}  // namespace tandem::step
