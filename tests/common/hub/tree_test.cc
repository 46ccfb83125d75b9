#include "common/hub/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"

namespace tandem::hub {
namespace {

using testing::ElementsAre;

const std::string kSha256(64, 'a');
const std::string kSha1(40, 'b');

TEST(TreeTest, ModelFilesOnly) {
  const auto files = ParseTree(
      R"([{"type": "directory", "path": "d.gguf", "oid": "x", "size": 0},
          {"type": "file", "path": "README.md", "oid": 7},
          {"type": "file", "path": "mmproj-model-F16.gguf", "oid": "x"},
          {"type": "file", "path": "model.imatrix.gguf", "oid": "x"},
          {"type": "file", "path": "d/large.gguf", "oid": "x", "size": 9,
           "lfs": {"oid": ")" +
      kSha256 + R"(", "size": 5000000000, "pointerSize": 135}},
          {"type": "file", "path": "small.gguf", "oid": ")" +
      kSha1 + R"(", "size": 3}])");
  ASSERT_TRUE(files.ok()) << files.status();
  const RepoFile large{"d/large.gguf", {DigestKind::kSha256, kSha256, 5'000'000'000}};
  const RepoFile small{"small.gguf", {DigestKind::kGitBlob, kSha1, 3}};
  EXPECT_THAT(*files, ElementsAre(large, small));
}

// Many brackets must not exhaust the stack.
TEST(TreeTest, Broken) {
  for (const std::string& json :
       {std::string(), std::string("{}"), std::string("[1]"), std::string("[{}"),
        std::string(1 << 20, '['), std::string("[{\"type\":\"file\",\"path\":\"a.gguf\"}]")}) {
    EXPECT_EQ(ParseTree(json).status().code(), absl::StatusCode::kInvalidArgument)
        << json.substr(0, 40);
  }
  EXPECT_TRUE(ParseTree("[{}, {\"type\": [], \"path\": {}}]").ok());
}

TEST(TreeTest, NextPage) {
  EXPECT_EQ(NextPage(R"(<https://h/p?cursor=a&limit=2>; rel="next")"),
            "https://h/p?cursor=a&limit=2");
  EXPECT_EQ(NextPage(R"(<https://h/1>; rel="prev", <https://h/3>; rel="next")"), "https://h/3");
  for (const char* link : {"", "https://h", "<https://h>", R"(<https://h>; rel="prev")", "><"}) {
    EXPECT_EQ(NextPage(link), "") << link;
  }
}

}  // namespace
}  // namespace tandem::hub
