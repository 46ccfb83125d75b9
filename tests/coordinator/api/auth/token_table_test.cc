#include "coordinator/api/auth/token_table.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tandem::coordinator {
namespace {

TEST(TokenTableTest, LinesAreNameScopesTokenAndLimits) {
  const std::string hash = absl::BytesToHexString(
      std::string(reinterpret_cast<const char*>(HashToken("a token that is not here").data()), 32));
  const auto table = TokenTable::Parse(absl::StrCat(
      "# the team\n\n"
      "alice  generate        0123456789abcdef  rate=0.5 burst=10 concurrent=8 # a\r\n",
      "ops\tgenerate,admin\tsha256:", hash, "\n"));
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->entries().size(), 2u);

  const TokenEntry* alice = table->Find("0123456789abcdef");
  ASSERT_NE(alice, nullptr);
  EXPECT_EQ(alice->name, "alice");
  EXPECT_EQ(alice->scopes, (Scopes{.generate = true, .admin = false}));
  EXPECT_EQ(alice->limits, (TokenLimits{.rate = 0.5, .burst = 10, .concurrent = 8}));

  const TokenEntry* ops = table->Find("a token that is not here");
  ASSERT_NE(ops, nullptr);
  EXPECT_EQ(ops->name, "ops");
  EXPECT_EQ(ops->scopes, (Scopes{.generate = true, .admin = true}));

  for (const std::string token :
       {"", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef ", hash.c_str()}) {
    EXPECT_EQ(table->Find(token), nullptr) << token;
  }
}

// Known value: SHA-256 of "abc", FIPS 180-4's example.
TEST(TokenTableTest, TheHashIsSha256) {
  const TokenHash hash = HashToken("abc");
  EXPECT_EQ(
      absl::BytesToHexString(std::string(reinterpret_cast<const char*>(hash.data()), hash.size())),
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(TokenTableTest, ABadLineIsNamedWithoutItsToken) {
  const std::string secret = "0123456789abcdef";
  const std::string good = absl::StrCat("a generate ", secret);
  struct Case {
    std::string text;
    std::string error;
  };
  const Case cases[] = {
      {"", "there is no token"},
      {"# none\n", "there is no token"},
      {"a generate", "line 1: a line has a name, scopes and a token"},
      {absl::StrCat("\na/b generate ", secret), "line 2: a name has up to 64 letters"},
      {absl::StrCat("a write ", secret), "line 1: scopes are generate, admin, or generate,admin"},
      {absl::StrCat("a generate, ", secret), "scopes are"},
      {"a generate short", "the token has 5 characters, it needs 16 to 4096"},
      {absl::StrCat("a generate \x01", secret), "not printable"},
      {absl::StrCat("a generate sha256:", secret), "64 hexadecimal digits"},
      {absl::StrCat(good, " rate=0"), "limits are"},
      {absl::StrCat(good, " rate=nan"), "limits are"},
      {absl::StrCat(good, " rate=-1"), "limits are"},
      {absl::StrCat(good, " rate=1e7"), "limits are"},
      {absl::StrCat(good, " burst=0.5 rate=1"), "limits are"},
      {absl::StrCat(good, " burst=2"), "burst needs rate"},
      {absl::StrCat(good, " concurrent=1.5"), "limits are"},
      {absl::StrCat(good, " weight=1"), "limits are"},
      {absl::StrCat(good, "\na admin another-token-of-16"), "line 2: the name is there already"},
      {absl::StrCat(good, "\nb admin ", secret), "line 2: the token is there already"},
  };
  for (const Case& one : cases) {
    const auto table = TokenTable::Parse(one.text);
    EXPECT_EQ(table.status().code(), absl::StatusCode::kInvalidArgument) << one.text;
    EXPECT_TRUE(absl::StrContains(table.status().message(), one.error))
        << one.text << ": " << table.status();
    EXPECT_FALSE(absl::StrContains(table.status().message(), secret)) << table.status();
  }
}

TEST(TokenTableTest, TheNumberOfTokensIsBounded) {
  std::string text;
  for (size_t i = 0; i < kMaxTokens; ++i) {
    absl::StrAppend(&text, "n", i, " generate 0123456789abcdef-", i, "\n");
  }
  EXPECT_TRUE(TokenTable::Parse(text).ok());
  const auto table = TokenTable::Parse(text + "one-more generate 0123456789abcdef\n");
  EXPECT_TRUE(absl::StrContains(table.status().message(), "line 4097: there are more than 4096"))
      << table.status();
}

}  // namespace
}  // namespace tandem::coordinator
