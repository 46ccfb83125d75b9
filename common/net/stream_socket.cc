#include "common/net/stream_socket.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/status.h"

namespace tandem::net {
namespace {

// Empty for addresses that other machines can't use.
std::string NumericHost(const sockaddr* address) {
  if (address == nullptr) return "";
  const bool v6 = address->sa_family == AF_INET6;
  if (!v6 && address->sa_family != AF_INET) return "";
  if (v6 && IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr)) {
    return "";
  }
  const socklen_t length = v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  char host[NI_MAXHOST];
  if (getnameinfo(address, length, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return v6 ? absl::StrCat("[", host, "]") : host;
}

// Small messages are sent at once.
void SendAtOnce(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

std::vector<std::string> InterfaceHosts() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::vector<std::string> hosts, loopback;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if ((one->ifa_flags & IFF_UP) == 0) continue;
    std::string host = NumericHost(one->ifa_addr);
    if (host.empty()) continue;
    (one->ifa_flags & IFF_LOOPBACK ? loopback : hosts).push_back(std::move(host));
  }
  hosts.insert(hosts.end(), loopback.begin(), loopback.end());
  return hosts;
}

absl::StatusOr<FileDescriptor> StartConnect(const std::string& address) {
  TANDEM_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(parsed.host.c_str(), std::to_string(parsed.port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::InvalidArgumentError(absl::StrCat(address, ": ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  FileDescriptor fd(socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return absl::UnavailableError(absl::StrCat(address, ": ", strerror(errno)));
  SendAtOnce(fd.get());
  if (connect(fd.get(), found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) {
    return absl::UnavailableError(absl::StrCat(address, ": ", strerror(errno)));
  }
  return fd;
}

absl::Status ConnectResult(const FileDescriptor& socket) {
  int error = 0;
  socklen_t length = sizeof(error);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  return error == 0 ? absl::OkStatus() : absl::UnavailableError(strerror(error));
}

FileDescriptor AcceptWaiting(int listening) {
  FileDescriptor fd(accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd.get() >= 0) SendAtOnce(fd.get());
  return fd;
}

}  // namespace tandem::net
