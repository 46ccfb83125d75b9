#include "coordinator/api/auth/token_usage.h"

#include <chrono>

#include "absl/strings/str_cat.h"

namespace tandem::coordinator {
namespace {

// A request of a token with too many at a time: no one knows when one of them ends.
constexpr Duration kRetryConcurrent = std::chrono::seconds(1);

}  // namespace

absl::StatusOr<TokenUsage::Hold> TokenUsage::Take(const TokenEntry& token, Duration& retry_after,
                                                  uint32_t count) {
  if (token.limits == TokenLimits{.burst = token.limits.burst}) return Hold();
  MutexLock lock(mutex_);
  Used& used = used_[token.name];
  if (!(used.limits == token.limits)) {
    used.limits = token.limits;
    used.bucket.reset();
    if (token.limits.rate > 0) {
      used.bucket.emplace(token.limits.rate, token.limits.burst, clock_.Now());
    }
  }
  const uint32_t most = token.limits.concurrent;
  if (most > 0 && count > most) {
    return absl::InvalidArgumentError(absl::StrCat(count, " requests in one call, token '",
                                                   token.name, "' may have at most ", most));
  }
  if (most > 0 && used.concurrent + count > most) {
    retry_after = kRetryConcurrent;
    return absl::ResourceExhaustedError(absl::StrCat(
        "token '", token.name, "' has ", used.concurrent, " requests in progress, at most ", most));
  }
  if (used.bucket.has_value()) {
    retry_after = used.bucket->Take(clock_.Now(), count);
    if (retry_after > Duration::zero()) {
      return absl::ResourceExhaustedError(absl::StrCat("token '", token.name, "' may send ",
                                                       token.limits.rate, " requests per second"));
    }
  }
  used.concurrent += count;
  return Hold(this, token.name, count);
}

void TokenUsage::GiveBack(const std::string& name, uint32_t count) {
  MutexLock lock(mutex_);
  used_[name].concurrent -= count;
}

}  // namespace tandem::coordinator
