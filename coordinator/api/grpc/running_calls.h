// RunningCalls: calls by their caller and the id of their request, for an API that cancels by id:
// nobody cancels another caller's.
//
// Thread-safe.
#ifndef TANDEM_COORDINATOR_API_GRPC_RUNNING_CALLS_H_
#define TANDEM_COORDINATOR_API_GRPC_RUNNING_CALLS_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"

namespace tandem::coordinator {

class RunningCalls {
  using Key = std::pair<std::string, std::string>;  // the caller, the id

 public:
  using CancelFn = std::function<void()>;

  // A call's place, as long as it lives.
  class Place {
   public:
    Place() = default;
    Place(RunningCalls& calls, const std::string& caller, const std::string& id, CancelFn cancel)
        : calls_(&calls) {
      MutexLock lock(calls_->mutex_);
      at_ = calls_->by_id_.emplace(Key(caller, id), std::move(cancel));
    }
    Place(Place&& other) noexcept : calls_(std::exchange(other.calls_, nullptr)), at_(other.at_) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(calls_, other.calls_);
      std::swap(at_, other.at_);
      return *this;
    }
    ~Place() {
      if (calls_ == nullptr) return;
      MutexLock lock(calls_->mutex_);
      calls_->by_id_.erase(at_);
    }

   private:
    RunningCalls* calls_ = nullptr;
    std::multimap<Key, CancelFn>::iterator at_{};
  };

  // Calls the CancelFn of every call of that caller with that id, without a lock held: it may be
  // one that has just lost its place.
  void Cancel(const std::string& caller, const std::string& id) {
    std::vector<CancelFn> found;
    {
      MutexLock lock(mutex_);
      for (auto [at, end] = by_id_.equal_range(Key(caller, id)); at != end; ++at)
        found.push_back(at->second);
    }
    for (const CancelFn& cancel : found) cancel();
  }

 private:
  Mutex mutex_;
  std::multimap<Key, CancelFn> by_id_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_RUNNING_CALLS_H_
