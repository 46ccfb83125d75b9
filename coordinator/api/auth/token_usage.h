// TokenUsage: what each token's requests have taken of its limits. A token is known by its name, so
// that a file that is read again forgets nothing.
#ifndef TANDEM_COORDINATOR_API_AUTH_TOKEN_USAGE_H_
#define TANDEM_COORDINATOR_API_AUTH_TOKEN_USAGE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "coordinator/api/auth/token_table.h"
#include "coordinator/listener/rate_bucket.h"

namespace tandem::coordinator {

// Thread-safe.
class TokenUsage {
 public:
  // Some requests, as long as it lives. The usage must outlive it.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept
        : usage_(std::exchange(other.usage_, nullptr)),
          name_(std::move(other.name_)),
          count_(other.count_) {}
    Hold& operator=(Hold&& other) noexcept {
      std::swap(usage_, other.usage_);
      std::swap(name_, other.name_);
      std::swap(count_, other.count_);
      return *this;
    }
    ~Hold() {
      if (usage_ != nullptr) usage_->GiveBack(name_, count_);
    }

   private:
    friend class TokenUsage;
    Hold(TokenUsage* usage, std::string name, uint32_t count)
        : usage_(usage), name_(std::move(name)), count_(count) {}

    TokenUsage* usage_ = nullptr;
    std::string name_{};
    uint32_t count_ = 0;
  };

  explicit TokenUsage(const Clock& clock = Clock::System()) : clock_(clock) {}

  // For `count` requests at once. RESOURCE_EXHAUSTED if the token has reached a limit;
  // `retry_after` is when to come again. INVALID_ARGUMENT if it never has so many at a time.
  absl::StatusOr<Hold> Take(const TokenEntry& token, Duration& retry_after, uint32_t count = 1);

 private:
  struct Used {
    TokenLimits limits{};
    std::optional<RateBucket> bucket{};
    uint32_t concurrent = 0;
  };
  void GiveBack(const std::string& name, uint32_t count);

  const Clock& clock_;
  Mutex mutex_;
  // As many as names that the file has ever had with limits.
  std::map<std::string, Used> used_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_AUTH_TOKEN_USAGE_H_
