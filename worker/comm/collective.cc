#include "worker/comm/collective.h"

#include "absl/strings/str_cat.h"

namespace tandem::worker {

std::string ToString(const CollectiveTag& tag) {
  switch (tag.kind) {
    case CollectiveKind::kJoin:
      return "join";
    case CollectiveKind::kAllReduce:
      return absl::StrCat("all-reduce of ", tag.bytes, " bytes");
    case CollectiveKind::kGather:
      return absl::StrCat("gather of ", tag.bytes, " bytes to rank ", tag.root);
    case CollectiveKind::kAllGather:
      return absl::StrCat("all-gather of ", tag.bytes, " bytes");
    case CollectiveKind::kBroadcast:
      return absl::StrCat("broadcast of ", tag.bytes, " bytes from rank ", tag.root);
  }
  return "unknown collective";
}

absl::Status TagMismatch(int rank, const CollectiveTag& tag, const std::string& others,
                         const CollectiveTag& theirs) {
  return absl::InternalError(absl::StrCat("communicator: rank ", rank, " is in ", ToString(tag),
                                          ", ", others, " in ", ToString(theirs)));
}

absl::Status MissingRanks(const std::string& list, int size, const CollectiveTag& tag) {
  return absl::DeadlineExceededError(absl::StrCat("communicator: rank ", list, " of ", size,
                                                  " did not arrive in time at ", ToString(tag)));
}

absl::Status AbortReason(const absl::Status& reason) {
  return reason.ok() ? absl::AbortedError("communicator: aborted") : reason;
}

}  // namespace tandem::worker
