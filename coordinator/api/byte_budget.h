// ByteBudget: how many bytes of requests are in memory at once.
//
// Thread-safe.
#ifndef TANDEM_COORDINATOR_API_BYTE_BUDGET_H_
#define TANDEM_COORDINATOR_API_BYTE_BUDGET_H_

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"

namespace tandem::coordinator {

class ByteBudget {
 public:
  // Bytes that are taken; they are given back when it ends. The budget must outlive it.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_) {}
    Hold& operator=(Hold&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Hold() {
      if (budget_ != nullptr) budget_->GiveBack(bytes_);
    }

   private:
    friend class ByteBudget;
    Hold(ByteBudget* budget, size_t bytes) : budget_(budget), bytes_(bytes) {}

    ByteBudget* budget_ = nullptr;
    size_t bytes_ = 0;
  };

  explicit ByteBudget(size_t most) : most_(most) {}

  // RESOURCE_EXHAUSTED with the numbers if `bytes` more are too many.
  absl::StatusOr<Hold> Take(size_t bytes);

 private:
  void GiveBack(size_t bytes);

  const size_t most_;
  Mutex mutex_;
  size_t taken_ TANDEM_GUARDED_BY(mutex_) = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_BYTE_BUDGET_H_
