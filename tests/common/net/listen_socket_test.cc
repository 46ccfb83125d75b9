#include "common/net/listen_socket.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/address.h"

namespace tandem::net {
namespace {

TEST(ListenSocketTest, TakesAFreePortAndSaysWhich) {
  const auto socket = ListenSocket::Bind("--listen", "127.0.0.1:0");
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_EQ(ParseHostPort(socket->address())->host, "127.0.0.1");
  EXPECT_GT(ParseHostPort(socket->address())->port, 0);
  EXPECT_EQ(socket->fds().size(), 1u);
}

TEST(ListenSocketTest, AnAddressInUseIsSaidWithTheReason) {
  const auto first = ListenSocket::Bind("--listen", "127.0.0.1:0");
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = ListenSocket::Bind("--listen", first->address());
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_EQ(second.status().message(),
            "--listen: cannot listen on " + first->address() + ": Address already in use");
}

// Not on the other address alone.
TEST(ListenSocketTest, ANameOfWhichOneAddressIsInUseIsRefused) {
  const auto first = ListenSocket::Bind("--listen", "127.0.0.1:0");
  ASSERT_TRUE(first.ok()) << first.status();
  const int port = ParseHostPort(first->address())->port;
  const auto second = ListenSocket::Bind("--listen", "localhost:" + std::to_string(port));
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
}

TEST(ListenSocketTest, AHostOfAnotherMachineOrOfNoneIsRefused) {
  EXPECT_EQ(ListenSocket::Bind("--listen", "192.0.2.1:0").status().message(),
            "--listen: cannot listen on 192.0.2.1:0: Cannot assign requested address");
  const auto nowhere = ListenSocket::Bind("--listen", "no-such-host.invalid:0");
  EXPECT_TRUE(absl::IsUnavailable(nowhere.status())) << nowhere.status();
}

TEST(ListenSocketTest, AnAddressWithoutPortIsInvalid) {
  EXPECT_TRUE(absl::IsInvalidArgument(ListenSocket::Bind("--listen", "localhost").status()));
}

// On an address of this test's own: another program may take the port meanwhile.
TEST(ListenSocketTest, APortIsFreeAgainWhenItsSocketIsClosed) {
  std::string address;
  {
    const auto first = ListenSocket::Bind("--listen", "127.77.15.3:0");
    address = first->address();
  }
  EXPECT_TRUE(ListenSocket::Bind("--listen", address).ok());
}

}  // namespace
}  // namespace tandem::net
