#include "coordinator/scheduler/plan.h"

#include "absl/strings/str_cat.h"

namespace tandem::coordinator {

std::string Plan::DebugString() const {
  std::string text;
  const auto append = [&](auto... parts) {
    absl::StrAppend(&text, text.empty() ? "" : " ", parts...);
  };
  for (const PlanEntry& entry : entries) {
    append(entry.phase == Phase::kDecode ? "decode " : "prefill ", entry.sequence->handle, "+",
           entry.num_tokens - entry.num_drafts, entry.refers ? "*" : "");
    if (entry.num_drafts > 0) absl::StrAppend(&text, "+", entry.num_drafts);
  }
  for (const uint64_t handle : preempted) append("preempted ", handle);
  return text;
}

}  // namespace tandem::coordinator
