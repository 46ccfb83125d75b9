#include "coordinator/api/auth/gate.h"

#include <gtest/gtest.h>
#include <stdio.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tandem::coordinator {
namespace {

constexpr char kGenerate[] = "/tandem.v1.Generation/Generate";
constexpr char kStats[] = "/tandem.v1.Generation/GetStats";
constexpr char kHealth[] = "/grpc.health.v1.Health/Check";
constexpr char kReflection[] = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

class GateTest : public ::testing::Test {
 protected:
  GateTest() : path_(::testing::TempDir() + "/tokens") {
    Write("user generate the-token-of-a-user\nops admin the-token-of-the-ops\n");
    auto store = TokenStore::Open("--tokens", path_);
    EXPECT_TRUE(store.ok()) << store.status();
    gate_ = std::make_unique<Gate>(*std::move(store), "the-token-of-the-gateway", clock_);
  }
  // In one go, as an operator should.
  void Write(const std::string& text) {
    const std::string other = path_ + ".new";
    std::ofstream(other) << text;
    ASSERT_EQ(rename(other.c_str(), path_.c_str()), 0);
  }
  absl::StatusCode Check(std::string_view method, const std::string& authorization) {
    return gate_->Check(method, authorization).code();
  }

  SimulatedClock clock_;
  const std::string path_;
  std::unique_ptr<Gate> gate_;
};

using enum absl::StatusCode;

TEST_F(GateTest, ScopesAllowWhatTheTableSays) {
  const std::string user = "Bearer the-token-of-a-user";
  const std::string ops = "Bearer the-token-of-the-ops";
  const std::string gateway = "Bearer the-token-of-the-gateway";
  struct Case {
    const char* method;
    absl::StatusCode without, as_user, as_ops, as_gateway;
  };
  for (const Case& one : {
           Case{kHealth, kOk, kOk, kOk, kOk},
           Case{kReflection, kUnauthenticated, kOk, kOk, kOk},
           Case{kGenerate, kUnauthenticated, kOk, kPermissionDenied, kOk},
           Case{kStats, kUnauthenticated, kPermissionDenied, kOk, kPermissionDenied},
           Case{"/tandem.v1.Generation/GenerateMore", kUnauthenticated, kPermissionDenied, kOk,
                kPermissionDenied},
           Case{"", kUnauthenticated, kPermissionDenied, kOk, kPermissionDenied},
       }) {
    EXPECT_EQ(Check(one.method, ""), one.without) << one.method;
    EXPECT_EQ(Check(one.method, user), one.as_user) << one.method;
    EXPECT_EQ(Check(one.method, ops), one.as_ops) << one.method;
    EXPECT_EQ(Check(one.method, gateway), one.as_gateway) << one.method;
  }
}

TEST_F(GateTest, OnlyAKnownBearerTokenIsOne) {
  EXPECT_EQ(Check(kGenerate, "bearer the-token-of-a-user"), kOk);  // RFC 9110: any case
  for (const std::string authorization :
       {"Bearer", "Bearer ", "the-token-of-a-user", "Basic the-token-of-a-user",
        "Bearer the-token-of-a-use", "Bearer the-token-of-a-user ",
        "Bearer  the-token-of-a-user"}) {
    EXPECT_EQ(Check(kGenerate, authorization), kUnauthenticated) << authorization;
  }
}

TEST_F(GateTest, TheGatewaysPortIsTheGateways) {
  const std::string user = "Bearer the-token-of-a-user";
  const auto check = [&](const char* method, const std::string& authorization,
                         const std::string& header) {
    return gate_->CheckFromGateway(method, authorization, header).code();
  };
  EXPECT_EQ(check(kGenerate, user, "the-token-of-the-gateway"), kOk);
  EXPECT_EQ(check(kGenerate, "", "the-token-of-the-gateway"), kUnauthenticated);
  EXPECT_EQ(check(kHealth, "", "the-token-of-the-gateway"), kOk);
  EXPECT_EQ(check(kHealth, "", ""), kUnauthenticated);
  EXPECT_EQ(check(kGenerate, user, "the-token-of-a-user"), kUnauthenticated);
}

TEST_F(GateTest, AnEmptyGatewayTokenIsNone) {
  Gate gate(nullptr, "");
  EXPECT_EQ(gate.CheckFromGateway(kHealth, "", "").code(), kUnauthenticated);
  EXPECT_EQ(gate.Check(kGenerate, "").code(), kOk) << "without tokens no call needs one";
}

TEST_F(GateTest, ANewFileCountsAtOnceAndABadOneDoesNot) {
  const std::string user = "Bearer the-token-of-a-user";
  Write("user generate another-token-of-the-user\n");
  EXPECT_EQ(Check(kGenerate, user), kUnauthenticated);
  EXPECT_EQ(Check(kGenerate, "Bearer another-token-of-the-user"), kOk);
  Write("user nonsense\n");
  EXPECT_EQ(Check(kGenerate, "Bearer another-token-of-the-user"), kOk);
  ASSERT_EQ(remove(path_.c_str()), 0);
  EXPECT_EQ(Check(kGenerate, "Bearer another-token-of-the-user"), kOk);
  Write("user generate the-token-of-a-user\n");
  EXPECT_EQ(Check(kGenerate, user), kOk);
  EXPECT_EQ(Check(kGenerate, "Bearer another-token-of-the-user"), kUnauthenticated);
}

TEST_F(GateTest, LimitsAreOfTheToken) {
  Write("user generate the-token-of-a-user rate=1\nfree generate the-token-without-limits\n");
  Duration retry_after{};
  EXPECT_TRUE(gate_->Take("Bearer the-token-of-a-user", retry_after).ok());
  EXPECT_EQ(retry_after, Duration::zero());
  const auto refused = gate_->Take("Bearer the-token-of-a-user", retry_after);
  EXPECT_EQ(refused.status().code(), kResourceExhausted);
  EXPECT_EQ(refused.status().message(), "token 'user' may send 1 requests per second");
  EXPECT_EQ(retry_after, std::chrono::seconds(1));
  EXPECT_TRUE(gate_->Take("Bearer the-token-without-limits", retry_after).ok());
  EXPECT_TRUE(gate_->Take("Bearer the-token-of-the-gateway", retry_after).ok());
  EXPECT_EQ(gate_->Take("Bearer no-one's", retry_after).status().code(), kUnauthenticated);
}

TEST(TokenStoreTest, WhatCannotBeUsedIsNamed) {
  const std::string path = ::testing::TempDir() + "/bad-tokens";
  std::ofstream(path) << "a generate short\n";
  EXPECT_EQ(TokenStore::Open("--tokens", path).status().message(),
            absl::StrCat("--tokens: '", path,
                         "': line 1: the token has 5 characters, it needs 16 to 4096"));
  const auto missing = TokenStore::Open("--tokens", path + ".none");
  EXPECT_TRUE(
      absl::StrContains(missing.status().message(), "cannot be read: No such file or directory"))
      << missing.status();
}

TEST(RefusalLogTest, TenLinesAtOnceThenOneASecond) {
  SimulatedClock clock;
  RefusalLog log(clock);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(log.Add("/a\n", "no token"), "refused: /a\\n: no token");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(log.Add("/a", "no token"), "");
  clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(log.Add("/b", "no scope"), "refused: /b: no scope; and 5 calls before it");
  EXPECT_EQ(log.Add("/b", "no scope"), "");
}

TEST(RefusalLogTest, OfALongNameTheFirstBytes) {
  SimulatedClock clock;
  EXPECT_EQ(RefusalLog(clock).Add(std::string(1000, 'x'), "r"),
            absl::StrCat("refused: ", std::string(80, 'x'), ": r"));
}

}  // namespace
}  // namespace tandem::coordinator
