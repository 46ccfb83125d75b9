#include "coordinator/listener/acceptor.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "common/base/address.h"
#include "common/base/queue.h"

namespace tandem::coordinator {
namespace {

Deadline Patience() { return Deadline::After(std::chrono::seconds(60)); }

int ConnectTo(const std::string& address) {
  const HostPort parsed = ParseHostPort(address).value();
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(parsed.port));
  inet_pton(AF_INET, parsed.host.c_str(), &to.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  return fd;
}

// What the other side sends until it closes.
std::string ReadAll(int fd) {
  std::string text;
  char buffer[256];
  for (ssize_t n = 0; (n = read(fd, buffer, sizeof(buffer))) > 0;) text.append(buffer, n);
  return text;
}

class AcceptorTest : public ::testing::Test {
 protected:
  void StartAcceptor(size_t most) {
    auto socket = net::ListenSocket::Bind("--listen", "127.0.0.1:0").value();
    address_ = socket.address();
    acceptor_.emplace("--listen", std::move(socket), most,
                      [this](int fd) { accepted_.TryPush(std::move(fd)); });
  }

  BoundedQueue<int> accepted_{1024};
  std::string address_;
  std::optional<Acceptor> acceptor_;
};

TEST_F(AcceptorTest, OneAboveTheLimitIsToldSoAndClosed) {
  StartAcceptor(1);
  const int first = ConnectTo(address_);
  const std::optional<int> taken = accepted_.Pop(Patience());
  ASSERT_TRUE(taken.has_value());
  const int second = ConnectTo(address_);
  EXPECT_NE(ReadAll(second).find("the server has 1 connections, as many as it takes"),
            std::string::npos);
  close(*taken);
  const int third = ConnectTo(address_);
  const std::optional<int> next = accepted_.Pop(Patience());
  EXPECT_TRUE(next.has_value()) << "the first is closed";
  for (const int fd : {first, second, third, next.value_or(-1)}) close(fd);
}

TEST_F(AcceptorTest, AcceptsAgainWhenDescriptorsAreFreeAgain) {
  StartAcceptor(1024);
  const int waiting = socket(AF_INET, SOCK_STREAM, 0);  // the lowest that was free
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(waiting) + 1;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const HostPort parsed = ParseHostPort(address_).value();
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(parsed.port));
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  EXPECT_EQ(connect(waiting, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  EXPECT_FALSE(accepted_.Pop(Deadline::After(std::chrono::milliseconds(200))).has_value());
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  const std::optional<int> taken = accepted_.Pop(Patience());
  EXPECT_TRUE(taken.has_value());
  close(waiting);
  close(taken.value_or(-1));
}

}  // namespace
}  // namespace tandem::coordinator
