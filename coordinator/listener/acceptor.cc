#include "coordinator/listener/acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/log.h"

namespace tandem::coordinator {
namespace {

// How long to wait for a descriptor to become free.
constexpr int kRetryMillis = 50;
// Before the other addresses, and the end, have their turn.
constexpr int kMostPerRound = 64;

// What an HTTP/2 server says to a connection that it does not take: empty SETTINGS, then GOAWAY
// with ENHANCE_YOUR_CALM. RFC 9113, sections 3.4, 6.5 and 6.8.
std::string GoAway(const std::string& reason) {
  const auto length = static_cast<char>(8 + reason.size());
  std::string frames("\0\0\0\4\0\0\0\0\0", 9);
  frames += std::string("\0\0", 2) + length + std::string("\7\0\0\0\0\0", 6);
  frames += std::string("\0\0\0\0\0\0\0\x0b", 8) + reason;
  return frames;
}

}  // namespace

Acceptor::Acceptor(std::string name, net::ListenSocket socket, size_t most_connections, TakeFn take)
    : name_(std::move(name)),
      socket_(std::move(socket)),
      take_(std::move(take)),
      limit_(most_connections),
      refusals_(Clock::System(), name_) {
  int fds[2];
  TANDEM_CHECK(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0) << strerror(errno);
  end_read_ = fds[0];
  end_write_ = fds[1];
  thread_ = std::thread([this] { Run(); });
}

Acceptor::~Acceptor() {
  close(end_write_);
  thread_.join();
  close(end_read_);
}

void Acceptor::Wait(bool for_connections) {
  std::vector<pollfd> files = {{.fd = end_read_, .events = POLLIN, .revents = 0}};
  for (const int fd : socket_.fds()) {
    if (for_connections) files.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  }
  const int ready = poll(files.data(), files.size(), for_connections ? -1 : kRetryMillis);
  // Short of memory, or of the right to poll so many files: not in a busy loop.
  if (ready < 0 && errno != EINTR)
    std::this_thread::sleep_for(std::chrono::milliseconds(kRetryMillis));
}

bool Acceptor::Ended() const {
  pollfd end{.fd = end_read_, .events = POLLIN, .revents = 0};
  return poll(&end, 1, 0) > 0;
}

void Acceptor::Run() {
  bool has_descriptors = true;
  while (!Ended()) {
    Wait(has_descriptors);
    has_descriptors = true;
    for (const int fd : socket_.fds()) has_descriptors &= AcceptSome(fd);
  }
}

bool Acceptor::AcceptSome(int listening) {
  for (int i = 0; i < kMostPerRound; ++i) {
    const int fd = accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EAGAIN) return true;
      if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
      // EMFILE, ENFILE, ENOBUFS, ENOMEM: of the process or the machine.
      if (!was_short_) {
        TANDEM_LOG(kError) << name_ << ": cannot accept connections: " << strerror(errno)
                           << "; trying again until it can";
      }
      was_short_ = true;
      return false;
    }
    was_short_ = false;
    if (!limit_.Admit(fd)) {
      Refuse(fd);
      continue;
    }
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    take_(fd);
  }
  return true;
}

void Acceptor::Refuse(int fd) {
  const std::string reason =
      absl::StrCat("the server has ", limit_.most(), " connections, as many as it takes");
  refusals_.Add("a connection", reason);
  const std::string frames = GoAway(reason);
  send(fd, frames.data(), frames.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  shutdown(fd, SHUT_WR);
  // What has come already is read: closing over unread bytes would take the answer back.
  char unread[512];
  [[maybe_unused]] const ssize_t dropped = recv(fd, unread, sizeof(unread), MSG_DONTWAIT);
  close(fd);
}

}  // namespace tandem::coordinator
