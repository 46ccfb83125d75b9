#include "coordinator/observe/refusal_counts.h"

#include <optional>

namespace tandem::coordinator {
namespace {

using Reason = RefusalCounts::Reason;

std::optional<Reason> ReasonOf(absl::StatusCode code, Reason exhausted) {
  switch (code) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kCancelled:
      return std::nullopt;
    case absl::StatusCode::kResourceExhausted:
      return exhausted;
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return RefusalCounts::kUnauthenticated;
    case absl::StatusCode::kUnavailable:
      return RefusalCounts::kUnavailable;
    case absl::StatusCode::kDeadlineExceeded:
      return RefusalCounts::kTooLate;
    default:
      return RefusalCounts::kInvalid;
  }
}

}  // namespace

void RefusalCounts::Add(absl::StatusCode code, Reason exhausted) {
  const std::optional<Reason> reason = ReasonOf(code, exhausted);
  if (reason.has_value()) counts_[*reason].fetch_add(1, std::memory_order_relaxed);
}

}  // namespace tandem::coordinator
