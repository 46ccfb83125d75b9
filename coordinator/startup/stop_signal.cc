#include "coordinator/startup/stop_signal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "common/base/check.h"

namespace tandem::coordinator {
namespace {

// The signal handler's end of the pipe, the only state it uses.
std::atomic<int> g_write_fd{-1};

void WriteByte(int fd) {
  const int saved = errno;
  [[maybe_unused]] ssize_t written = write(fd, "x", 1);  // a full pipe has been raised already
  errno = saved;
}

void OnSignal(int) {
  if (const int fd = g_write_fd.load(std::memory_order_relaxed); fd >= 0) WriteByte(fd);
}

}  // namespace

StopSignal::StopSignal() {
  int fds[2];
  TANDEM_CHECK(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
  read_fd_ = fds[0];
  write_fd_ = fds[1];
  g_write_fd.store(write_fd_);
  struct sigaction action {};
  action.sa_handler = OnSignal;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

StopSignal::~StopSignal() {
  g_write_fd.store(-1);
  signal(SIGTERM, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  close(read_fd_);
  close(write_fd_);
}

void StopSignal::Raise() { WriteByte(write_fd_); }

bool StopSignal::raised() const {
  pollfd reader{.fd = read_fd_, .events = POLLIN, .revents = 0};
  return poll(&reader, 1, 0) == 1;
}

void StopSignal::Wait() {
  pollfd reader{.fd = read_fd_, .events = POLLIN, .revents = 0};
  while (poll(&reader, 1, -1) != 1) {
  }
}

}  // namespace tandem::coordinator
