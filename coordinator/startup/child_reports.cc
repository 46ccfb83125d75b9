#include "coordinator/startup/child_reports.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "absl/strings/str_cat.h"

namespace tandem::coordinator {
namespace {

// `stopped` is noticed within this time.
constexpr std::chrono::milliseconds kSlice(50);

}  // namespace

absl::StatusOr<std::unique_ptr<ChildReports>> ChildReports::Create() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return absl::ErrnoToStatus(errno, "pipe for a child's reports");
  }
  return std::unique_ptr<ChildReports>(new ChildReports(ends[0], ends[1]));
}

ChildReports::~ChildReports() {
  close(read_fd_);
  close(write_fd_);
}

std::string ChildReports::path() const {
  return absl::StrCat("/proc/", getpid(), "/fd/", write_fd_);
}

bool ChildReports::Wait(char report, Deadline deadline, const std::function<bool()>& stopped) {
  while (true) {
    if (Count(report) > 0) return true;
    if (deadline.Passed() || stopped()) return false;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.Left());
    pollfd wanted{.fd = read_fd_, .events = POLLIN, .revents = 0};
    poll(&wanted, 1, static_cast<int>(std::min(left, kSlice).count()));
  }
}

uint64_t ChildReports::Count(char report) {
  MutexLock lock(mutex_);
  char buffer[64];
  ssize_t count = 0;
  while ((count = read(read_fd_, buffer, sizeof(buffer))) > 0 || (count < 0 && errno == EINTR)) {
    for (ssize_t i = 0; i < count; ++i) ++counts_[static_cast<unsigned char>(buffer[i])];
  }
  return counts_[static_cast<unsigned char>(report)];
}

}  // namespace tandem::coordinator
