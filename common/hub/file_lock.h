// FileLock: an exclusive flock(2) on a file, held for the object's lifetime: one process at a time
// fetches a file. huggingface_hub takes the same locks.
#ifndef TANDEM_COMMON_HUB_FILE_LOCK_H_
#define TANDEM_COMMON_HUB_FILE_LOCK_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/hub/settings.h"

namespace tandem::hub {

class FileLock {
 public:
  // Creates the file if needed; its folder must exist. While another process has the lock, waits as
  // long as `progress` (any number) changes: DEADLINE_EXCEEDED after `timeout` without a change,
  // CANCELLED.
  static absl::StatusOr<FileLock> Acquire(const std::string& path,
                                          const std::function<uint64_t()>& progress,
                                          Duration timeout, const Cancelled& cancelled);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace tandem::hub

#endif  // TANDEM_COMMON_HUB_FILE_LOCK_H_
