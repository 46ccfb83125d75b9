#include "common/hub/settings.h"

#include <gtest/gtest.h>

#include <map>

#include "absl/status/status.h"

namespace tandem::hub {
namespace {

absl::StatusOr<Settings> From(const std::map<std::string, std::string>& variables) {
  return SettingsFrom([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string Cache(const std::map<std::string, std::string>& variables) {
  const auto settings = From(variables);
  EXPECT_TRUE(settings.ok()) << settings.status();
  return settings.value_or(Settings()).cache;
}

TEST(SettingsTest, CacheFolder) {
  std::map<std::string, std::string> variables{{"HOME", "/h"}};
  EXPECT_EQ(Cache(variables), "/h/.cache/huggingface/hub");
  variables["XDG_CACHE_HOME"] = "/x";
  EXPECT_EQ(Cache(variables), "/x/huggingface/hub");
  variables["HF_HOME"] = "~/hf";
  EXPECT_EQ(Cache(variables), "/h/hf/hub");
  variables["HF_HUB_CACHE"] = "/c";
  EXPECT_EQ(Cache(variables), "/c");
  EXPECT_EQ(From({}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SettingsTest, Defaults) {
  const auto settings = From({{"HOME", "/h"}, {"HF_TOKEN", ""}, {"HF_ENDPOINT", " "}});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->endpoint, Settings().endpoint);
  EXPECT_EQ(settings->token, "");
  EXPECT_FALSE(settings->offline);
}

TEST(SettingsTest, Values) {
  const auto settings = From({{"HF_HUB_CACHE", "/c"},
                              {"HF_ENDPOINT", "https://mirror.example/hub//"},
                              {"HF_TOKEN", " hf_abc\n"},
                              {"HF_HUB_OFFLINE", "True"},
                              {"HF_HUB_DOWNLOAD_TIMEOUT", "30"}});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->endpoint, "https://mirror.example/hub");
  EXPECT_EQ(settings->token, "hf_abc");
  EXPECT_TRUE(settings->offline);
  EXPECT_EQ(settings->stall_timeout, std::chrono::seconds(30));
}

TEST(SettingsTest, ErrorsNameTheVariableButNotTheToken) {
  const std::map<std::string, std::string> bad{{"HF_TOKEN", "hf_abc\r\nX: y"},
                                               {"HF_ENDPOINT", "mirror.example"},
                                               {"HF_HUB_DOWNLOAD_TIMEOUT", "-1"}};
  for (const auto& [name, value] : bad) {
    const absl::Status status = From({{"HF_HUB_CACHE", "/c"}, {name, value}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(status.message().find(name) == 0) << status;
    EXPECT_EQ(status.message().find("hf_abc"), absl::string_view::npos);
  }
}

}  // namespace
}  // namespace tandem::hub
