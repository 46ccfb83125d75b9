#include "common/net/stream_socket.h"

#include <poll.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/address.h"
#include "common/net/listen_socket.h"
#include "gtest/gtest.h"

namespace tandem::net {
namespace {

// Waits for room, which is there once it is known whether the connection stands.
absl::Status Connect(const std::string& address) {
  absl::StatusOr<FileDescriptor> socket = StartConnect(address);
  if (!socket.ok()) return socket.status();
  pollfd fd{.fd = socket->get(), .events = POLLOUT, .revents = 0};
  EXPECT_EQ(poll(&fd, 1, 60000), 1);
  return ConnectResult(*socket);
}

TEST(StreamSocketTest, ConnectsAndAccepts) {
  const auto listening = ListenSocket::Bind("test", "127.0.0.1:0").value();
  EXPECT_LT(AcceptWaiting(listening.fds()[0]).get(), 0);
  EXPECT_EQ(Connect(listening.address()), absl::OkStatus());
  EXPECT_GE(AcceptWaiting(listening.fds()[0]).get(), 0);
  EXPECT_LT(AcceptWaiting(listening.fds()[0]).get(), 0);
}

TEST(StreamSocketTest, WhereNobodyListensTheReasonIsSaid) {
  std::string address;
  { address = ListenSocket::Bind("test", "127.44.5.6:0").value().address(); }
  const absl::Status status = Connect(address);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(status.message(), "refused")) << status;
}

TEST(StreamSocketTest, NamesAreNotLookedUp) {
  EXPECT_EQ(StartConnect("localhost:80").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StartConnect("127.0.0.1").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(StreamSocketTest, AListeningSocketIsReachedByNumbers) {
  const auto one = ListenSocket::Bind("test", "127.0.0.1:0").value();
  EXPECT_EQ(ReachableAddresses(one), std::vector<std::string>{one.address()});
  const std::string port = one.address().substr(one.address().rfind(':'));
  for (const char* any : {"localhost:0", "0.0.0.0:0"}) {
    const auto named = ListenSocket::Bind("test", any).value();
    const std::vector<std::string> addresses = ReachableAddresses(named);
    ASSERT_FALSE(addresses.empty()) << any;
    for (const std::string& address : addresses) {
      EXPECT_EQ(Connect(address), absl::OkStatus()) << address;
    }
  }
}

TEST(StreamSocketTest, HostsOfInterfacesHaveLoopbackLast) {
  const std::vector<std::string> hosts = InterfaceHosts();
  ASSERT_FALSE(hosts.empty());
  const auto loopback = [](const std::string& host) { return IsLoopback(host + ":1"); };
  EXPECT_TRUE(std::is_partitioned(hosts.begin(), hosts.end(),
                                  [&](const std::string& host) { return !loopback(host); }));
  EXPECT_TRUE(std::find(hosts.begin(), hosts.end(), "127.0.0.1") != hosts.end());
  for (const std::string& host : hosts) {
    EXPECT_TRUE(ParseHostPort(host + ":1").ok()) << host;
    EXPECT_FALSE(absl::StartsWith(host, "[fe80:")) << host;
  }
}

}  // namespace
}  // namespace tandem::net
