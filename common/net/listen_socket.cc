#include "common/net/listen_socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/status.h"
#include "common/net/address_list.h"

namespace tandem::net {
namespace {

void SetPort(sockaddr* address, int port) {
  const auto wire = htons(static_cast<uint16_t>(port));
  if (address->sa_family == AF_INET) reinterpret_cast<sockaddr_in*>(address)->sin_port = wire;
  if (address->sa_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(address)->sin6_port = wire;
}

int BoundPort(int fd) {
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length);
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(bound).sin_port);
}

// A listening descriptor, or the system's reason. NOT_FOUND: this machine has no such address.
absl::StatusOr<int> Listen(const addrinfo& one) {
  const int fd = socket(one.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0 && errno == EAFNOSUPPORT) return absl::NotFoundError(strerror(errno));
  if (fd < 0) return absl::UnavailableError(strerror(errno));
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd, one.ai_addr, one.ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
  const bool absent = errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT;
  const char* const reason = strerror(errno);
  close(fd);
  if (absent) return absl::NotFoundError(reason);
  return absl::UnavailableError(reason);
}

}  // namespace

absl::StatusOr<ListenSocket> ListenSocket::Bind(const std::string& flag,
                                                const std::string& address) {
  TANDEM_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
  const std::string what = absl::StrCat(flag, ": cannot listen on ", address);
  absl::StatusOr<AddressList> found = Resolve(parsed, AI_PASSIVE);
  if (!found.ok()) return Annotate(found.status(), what);
  ListenSocket bound;
  int port = parsed.port;
  absl::Status failed;
  for (const addrinfo* one = found->get(); one != nullptr; one = one->ai_next) {
    SetPort(one->ai_addr, port);
    absl::StatusOr<int> fd = Listen(*one);
    if (!fd.ok()) {
      failed.Update(fd.status());
      // A resolver may name an address twice; another one's port 0 may be taken here.
      const bool may_fail = parsed.port == 0 || bound.Has(*one);
      if (absl::IsNotFound(fd.status()) || may_fail) continue;
      return Annotate(fd.status(), what);
    }
    bound.fds_.push_back(*fd);
    port = BoundPort(*fd);
  }
  if (bound.fds_.empty()) return absl::UnavailableError(absl::StrCat(what, ": ", failed.message()));
  bound.address_ = WithPort(address, port);
  return bound;
}

bool ListenSocket::Has(const addrinfo& address) const {
  return std::any_of(fds_.begin(), fds_.end(), [&](int fd) {
    sockaddr_storage bound{};
    socklen_t length = sizeof(bound);
    getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length);
    return length == address.ai_addrlen && memcmp(&bound, address.ai_addr, length) == 0;
  });
}

ListenSocket::~ListenSocket() {
  for (const int fd : fds_) close(fd);
}

}  // namespace tandem::net
