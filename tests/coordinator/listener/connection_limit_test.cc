#include "coordinator/listener/connection_limit.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tandem::coordinator {
namespace {

int NewSocket() { return socket(AF_INET, SOCK_STREAM, 0); }

TEST(ConnectionLimitTest, CountsWhatIsOpen) {
  ConnectionLimit limit(2);
  const int a = NewSocket(), b = NewSocket(), c = NewSocket();
  EXPECT_TRUE(limit.Admit(a));
  EXPECT_TRUE(limit.Admit(b));
  EXPECT_FALSE(limit.Admit(c));
  close(a);
  EXPECT_TRUE(limit.Admit(c));
  EXPECT_FALSE(limit.Admit(NewSocket()));
  close(b);
  close(c);
}

TEST(ConnectionLimitTest, ADescriptorThatIsAnotherFileNowIsClosed) {
  ConnectionLimit limit(1);
  const int first = NewSocket();
  EXPECT_TRUE(limit.Admit(first));
  const int other_socket = NewSocket(), file = open("/dev/null", O_RDONLY);
  ASSERT_EQ(dup2(other_socket, first), first);
  EXPECT_TRUE(limit.Admit(first)) << "another socket has its number";
  ASSERT_EQ(dup2(file, first), first);
  EXPECT_TRUE(limit.Admit(other_socket)) << "a file has its number";
  close(first);
  close(other_socket);
  close(file);
}

}  // namespace
}  // namespace tandem::coordinator
