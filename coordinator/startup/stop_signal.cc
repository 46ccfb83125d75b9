#include "coordinator/startup/stop_signal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "common/base/check.h"

namespace tandem::coordinator {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGHUP};

// The signal handler's end of the pipe, and the first signal: all the state that it uses.
std::atomic<int> g_write_fd{-1};
std::atomic<int> g_first{0};

void WriteByte(int fd) {
  const int saved = errno;
  [[maybe_unused]] ssize_t written = write(fd, "x", 1);  // a full pipe has been raised already
  errno = saved;
}

void OnSignal(int signal) {
  // SIGTERM after SIGHUP is the first request to stop: a closing terminal sends both.
  int first = 0;
  if (!g_first.compare_exchange_strong(first, signal) && signal != SIGHUP) {
    if (first != SIGHUP || !g_first.compare_exchange_strong(first, signal)) _exit(128 + signal);
  }
  if (const int fd = g_write_fd.load(std::memory_order_relaxed); fd >= 0) WriteByte(fd);
}

}  // namespace

StopSignal::StopSignal() {
  int fds[2];
  TANDEM_CHECK(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
  read_fd_ = fds[0];
  write_fd_ = fds[1];
  g_first.store(0);
  g_write_fd.store(write_fd_);
  struct sigaction action {};
  action.sa_handler = OnSignal;
  for (const int taken : kSignals) sigaction(taken, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  // A launcher may have ignored it; waitpid would then not tell how workers end.
  signal(SIGCHLD, SIG_DFL);
}

StopSignal::~StopSignal() {
  g_write_fd.store(-1);
  for (const int taken : kSignals) signal(taken, SIG_DFL);
  close(read_fd_);
  close(write_fd_);
}

void StopSignal::Raise() { WriteByte(write_fd_); }

std::string StopSignal::name() const {
  switch (g_first.load()) {
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    case SIGHUP:
      return "SIGHUP";
    default:
      return "";
  }
}

bool StopSignal::raised() const {
  pollfd reader{.fd = read_fd_, .events = POLLIN, .revents = 0};
  return poll(&reader, 1, 0) == 1;
}

void StopSignal::Wait() {
  while (!Wait(Deadline::After(std::chrono::hours(1)))) {
  }
}

bool StopSignal::Wait(Deadline deadline) {
  pollfd reader{.fd = read_fd_, .events = POLLIN, .revents = 0};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.Left());
    if (poll(&reader, 1, static_cast<int>(left.count())) == 1) return true;
    if (deadline.Passed()) return false;  // else a signal has interrupted it
  }
}

}  // namespace tandem::coordinator
