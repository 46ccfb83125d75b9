#include "common/hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "common/base/log.h"

namespace tandem::hub {
namespace {

constexpr Duration kPollInterval = std::chrono::milliseconds(100);
constexpr mode_t kMode = 0664;  // as huggingface_hub: users may share a cache

}  // namespace

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path,
                                           const std::function<uint64_t()>& progress,
                                           Duration timeout, const Cancelled& cancelled) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  FileLock lock(fd);
  ::fchmod(fd, kMode);  // whatever the umask; fails for a file of another user, who has done it
  uint64_t seen = 0;
  Deadline end = Deadline::After(timeout);
  for (bool first = true; ::flock(fd, LOCK_EX | LOCK_NB) != 0; first = false) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return absl::ErrnoToStatus(errno, "cannot lock " + path);
    }
    if (first) {
      TANDEM_LOG(kInfo) << "waiting for another process that has locked " << path;
    }
    if (cancelled()) return absl::CancelledError("stopped");
    if (const uint64_t now = progress(); now != seen) {
      seen = now;
      end = Deadline::After(timeout);
    }
    if (end.Passed()) {
      return absl::DeadlineExceededError("another process has locked " + path +
                                         " and makes no progress");
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace tandem::hub
