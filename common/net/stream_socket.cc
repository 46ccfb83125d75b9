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
#include "common/net/address_list.h"

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

// 10 s in all, as gRPC's connections of workers have them (keepalive.h in common/rpc).
constexpr int kIdleSeconds = 4;
constexpr int kProbeSeconds = 2;
constexpr int kProbes = 3;
constexpr uint32_t kUnansweredMs = 10'000;

// Small messages are sent at once, and an end that is gone while nothing is under way is noticed.
// TCP_USER_TIMEOUT would end connections to those that live and read nothing for so long.
void Configure(int fd) {
  const auto set = [fd](int level, int option, int value) {
    setsockopt(fd, level, option, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

// Which families an address that stands for any one stands for.
struct AnyAddress {
  bool v4 = false;
  bool v6 = false;
};

AnyAddress AnyOf(int fd, const sockaddr_storage& bound) {
  if (bound.ss_family == AF_INET) {
    return {.v4 = reinterpret_cast<const sockaddr_in&>(bound).sin_addr.s_addr == INADDR_ANY};
  }
  if (!IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(bound).sin6_addr)) return {};
  int only_v6 = 0;
  socklen_t length = sizeof(only_v6);
  getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, &length);
  return {.v4 = only_v6 == 0, .v6 = true};
}

bool IsV6(const std::string& host) { return host[0] == '['; }

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

std::vector<std::string> ReachableAddresses(const ListenSocket& listening) {
  std::vector<std::string> addresses, loopback;
  const auto add = [&](const std::string& host, const std::string& port) {
    std::string address = absl::StrCat(host, ":", port);
    (IsLoopback(address) ? loopback : addresses).push_back(std::move(address));
  };
  const std::string port = listening.address().substr(listening.address().rfind(':') + 1);
  for (const int fd : listening.fds()) {
    sockaddr_storage bound{};
    socklen_t length = sizeof(bound);
    getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length);
    const AnyAddress any = AnyOf(fd, bound);
    if (!any.v4 && !any.v6) {
      add(NumericHost(reinterpret_cast<sockaddr*>(&bound)), port);
      continue;
    }
    for (const std::string& host : InterfaceHosts()) {
      if (IsV6(host) ? any.v6 : any.v4) add(host, port);
    }
  }
  return addresses.empty() ? loopback : addresses;
}

absl::StatusOr<FileDescriptor> StartConnect(const std::string& address) {
  TANDEM_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
  const absl::StatusOr<AddressList> resolved = Resolve(parsed, AI_NUMERICHOST);
  if (!resolved.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(address, ": ", resolved.status().message()));
  }
  const addrinfo* const found = resolved->get();
  FileDescriptor fd(socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return absl::UnavailableError(absl::StrCat(address, ": ", strerror(errno)));
  Configure(fd.get());
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

bool IsUnanswered(int fd) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  return info.tcpi_unacked > 0 && info.tcpi_last_ack_recv >= kUnansweredMs;
}

FileDescriptor AcceptWaiting(int listening) {
  FileDescriptor fd(accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd.get() >= 0) Configure(fd.get());
  return fd;
}

}  // namespace tandem::net
