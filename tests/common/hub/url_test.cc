#include "common/hub/url.h"

#include <gtest/gtest.h>

namespace tandem::hub {
namespace {

Url Parsed(const std::string& text) {
  const auto url = Url::Parse(text);
  EXPECT_TRUE(url.ok()) << text << ": " << url.status();
  return url.value_or(Url());
}

TEST(UrlTest, SameOrigin) {
  const Url hub = Parsed("https://Hub.example/a?b");
  EXPECT_TRUE(hub.SameOrigin(Parsed("https://hub.example:443/other")));
  EXPECT_FALSE(hub.SameOrigin(Parsed("https://hub.example:8443/a")));
  EXPECT_FALSE(hub.SameOrigin(Parsed("http://hub.example:443/a")));
  EXPECT_FALSE(hub.SameOrigin(Parsed("https://cdn.hub.example/a")));
  EXPECT_FALSE(hub.SameOrigin(Parsed("https://hub.example.evil.example/a")));
}

TEST(UrlTest, OnlyHttpWithoutUsers) {
  for (const char* text : {"", "hub.example/a", "/a", "ftp://h/a", "file:///etc/passwd",
                           "https://u@h/", "https://u:p@h/", "https://", "javascript:1"}) {
    EXPECT_FALSE(Url::Parse(text).ok()) << text;
  }
}

TEST(UrlTest, ShownWithoutQuery) {
  EXPECT_EQ(Parsed("https://h.example/a/b?Signature=s#f").Shown(), "https://h.example/a/b");
  EXPECT_EQ(Parsed("http://h.example:8080/a").Shown(), "http://h.example:8080/a");
}

TEST(UrlTest, NoRedirectLeavesTls) {
  const Url tls = Parsed("https://h.example/a"), plain = Parsed("http://h.example/a");
  EXPECT_TRUE(CheckRedirect(tls, tls).ok());
  EXPECT_TRUE(CheckRedirect(plain, tls).ok());
  EXPECT_TRUE(CheckRedirect(plain, plain).ok());
  EXPECT_EQ(CheckRedirect(tls, plain).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(UrlTest, EscapedPath) {
  EXPECT_EQ(EscapePath("a b/ü#?%.gguf"), "a%20b/%C3%BC%23%3F%25.gguf");
  EXPECT_EQ(EscapePath("A-z_0.9~/x"), "A-z_0.9~/x");
}

}  // namespace
}  // namespace tandem::hub
