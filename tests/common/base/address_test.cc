#include "common/base/address.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem {
namespace {

TEST(ParseHostPortTest, TakesNamesAndBothKindsOfNumbers) {
  struct Case {
    const char* address;
    const char* host;
    int port;
  };
  for (const Case& c : {Case{"127.0.0.1:50051", "127.0.0.1", 50051}, Case{"node-7:0", "node-7", 0},
                        Case{"[::1]:65535", "::1", 65535}, Case{"0.0.0.0:1", "0.0.0.0", 1}}) {
    SCOPED_TRACE(c.address);
    const absl::StatusOr<HostPort> parsed = ParseHostPort(c.address);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->host, c.host);
    EXPECT_EQ(parsed->port, c.port);
  }
}

TEST(ParseHostPortTest, NamesWhatIsWrong) {
  struct Case {
    const char* address;
    const char* why;
  };
  for (const Case& c :
       {Case{"", "no port"}, Case{"localhost", "no port"}, Case{":80", "no host"},
        Case{"[]:80", "no host"}, Case{"::1:80", "brackets"}, Case{"a:", "port is a number"},
        Case{"a:-1", "port is a number"}, Case{"a:65536", "port is a number"},
        Case{"a:4294967376", "port is a number"}, Case{"a:80x", "port is a number"},
        Case{"a: 80", "port is a number"}, Case{"a:+80", "port is a number"}}) {
    SCOPED_TRACE(c.address);
    const absl::Status status = ParseHostPort(c.address).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    const std::string message(status.message());
    EXPECT_NE(message.find(c.why), std::string::npos) << message;
    EXPECT_NE(message.find(std::string("'") + c.address + "'"), std::string::npos) << message;
  }
}

TEST(IsLoopbackTest, OnlyWhatStaysOnThisMachine) {
  for (const char* address : {"127.0.0.1:1", "127.9.8.7:0", "[::1]:50051", "localhost:1"}) {
    EXPECT_TRUE(IsLoopback(address)) << address;
  }
  for (const char* address :
       {"0.0.0.0:1", "[::]:1", "128.0.0.1:1", "10.0.0.1:1", "localhost.example:1", "127.0.0.1",
        "127.0.0.1.example:1", "[::2]:1", ""}) {
    EXPECT_FALSE(IsLoopback(address)) << address;
  }
}

TEST(WithPortTest, KeepsTheHostAsItIsWritten) {
  EXPECT_EQ(WithPort("127.0.0.1:0", 50051), "127.0.0.1:50051");
  EXPECT_EQ(WithPort("[::1]:0", 7), "[::1]:7");
}

}  // namespace
}  // namespace tandem
