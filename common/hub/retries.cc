#include "common/hub/retries.h"

#include <algorithm>
#include <thread>

#include "common/base/clock.h"
#include "common/base/log.h"

namespace tandem::hub {
namespace {

constexpr Duration kLongestWait = std::chrono::minutes(1);
constexpr Duration kPollInterval = std::chrono::milliseconds(50);
constexpr int kMostDoublings = 6;

}  // namespace

bool IsTransient(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsUnavailable(status) ||
         absl::IsDeadlineExceeded(status) || absl::IsOutOfRange(status);
}

absl::Status Retries::Wait(const absl::Status& status, uint32_t retry_after_s) {
  if (!IsTransient(status) || ++failed_ >= settings_.attempts) return status;
  const Duration asked = std::chrono::seconds(retry_after_s);
  const Duration backoff = settings_.backoff * (1 << std::min(failed_ - 1, kMostDoublings));
  const Deadline end = Deadline::After(std::min(std::max(asked, backoff), kLongestWait));
  TANDEM_LOG(kWarning) << status.message() << "; trying again in "
                       << std::chrono::duration<double>(end.Left()).count() << " s (attempt "
                       << failed_ + 1 << " of " << settings_.attempts << ")";
  while (!end.Passed()) {
    if (cancelled_()) return absl::CancelledError("stopped");
    std::this_thread::sleep_for(std::min(end.Left(), kPollInterval));
  }
  return absl::OkStatus();
}

}  // namespace tandem::hub
