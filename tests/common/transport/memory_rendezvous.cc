#include "tests/common/transport/memory_rendezvous.h"

#include "absl/strings/str_cat.h"
#include "common/base/step_guard.h"

namespace tandem::transport {

absl::Status MemoryRendezvous::Put(const std::string& key, const std::string& value) {
  {
    MutexLock lock(mutex_);
    if (!values_.emplace(key, value).second) {
      return absl::AlreadyExistsError(absl::StrCat("rendezvous: '", key, "' was put before"));
    }
  }
  changed_.NotifyAll();
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemoryRendezvous::Get(const std::string& key, Deadline deadline) {
  NoteBlockingCall("Rendezvous::Get");
  MutexLock lock(mutex_);
  auto found = values_.end();
  changed_.Wait(lock, deadline, [&]() TANDEM_REQUIRES(mutex_) {
    return (found = values_.find(key)) != values_.end();
  });
  if (found == values_.end()) {
    return absl::DeadlineExceededError(absl::StrCat("rendezvous: '", key, "' was not put in time"));
  }
  return found->second;
}

}  // namespace tandem::transport
