#include "coordinator/cluster/rendezvous_registry.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tandem::coordinator {

absl::Status RendezvousRegistry::CheckEpoch(Epoch epoch) const {
  if (epoch == epoch_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("rendezvous of epoch ", epoch.value, ", the group is in epoch ", epoch_.value));
}

void RendezvousRegistry::SetEpoch(Epoch epoch) {
  std::map<std::string, std::vector<Answer>> abandoned;
  {
    MutexLock lock(mutex_);
    epoch_ = epoch;
    values_.clear();
    abandoned.swap(waiters_);
    num_waiters_ = 0;
  }
  for (auto& [key, answers] : abandoned) {
    for (Answer& answer : answers) answer(absl::AbortedError("the epoch ended"));
  }
}

absl::Status RendezvousRegistry::Put(Epoch epoch, const std::string& key,
                                     const std::string& value) {
  std::vector<Answer> waiting;
  {
    MutexLock lock(mutex_);
    if (absl::Status status = CheckEpoch(epoch); !status.ok()) return status;
    if (values_.size() >= kMaxKeys || value.size() > kMaxValueBytes) {
      return absl::ResourceExhaustedError(absl::StrCat("rendezvous takes ", kMaxKeys, " keys of ",
                                                       kMaxValueBytes, " bytes at most"));
    }
    if (!values_.emplace(key, value).second) {
      return absl::AlreadyExistsError(absl::StrCat("rendezvous key '", key, "' was put before"));
    }
    if (auto found = waiters_.find(key); found != waiters_.end()) {
      waiting = std::move(found->second);
      num_waiters_ -= waiting.size();
      waiters_.erase(found);
    }
  }
  for (Answer& answer : waiting) answer(value);
  return absl::OkStatus();
}

void RendezvousRegistry::Get(Epoch epoch, const std::string& key, Answer answer) {
  absl::StatusOr<std::string> now = absl::NotFoundError("");
  {
    MutexLock lock(mutex_);
    if (absl::Status status = CheckEpoch(epoch); !status.ok()) {
      now = status;
    } else if (auto found = values_.find(key); found != values_.end()) {
      now = found->second;
    } else if (num_waiters_ >= kMaxWaiters) {
      now = absl::ResourceExhaustedError("too many pending rendezvous gets");
    } else {
      waiters_[key].push_back(std::move(answer));
      ++num_waiters_;
      return;
    }
  }
  answer(std::move(now));
}

}  // namespace tandem::coordinator
