#include "common/hub/model_name.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"

namespace tandem::hub {
namespace {

TEST(ModelNameTest, Parts) {
  const auto name = ModelName::Parse("hf:bartowski/Qwen_3.0-8B-GGUF:Q4_K_M");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->owner, "bartowski");
  EXPECT_EQ(name->repo, "Qwen_3.0-8B-GGUF");
  EXPECT_EQ(name->choice, "Q4_K_M");
  EXPECT_EQ(name->Repository(), "bartowski/Qwen_3.0-8B-GGUF");
  EXPECT_EQ(name->Text(), "hf:bartowski/Qwen_3.0-8B-GGUF:Q4_K_M");
}

TEST(ModelNameTest, WithoutChoice) {
  const auto name = ModelName::Parse("hf:a/b");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->choice, "");
  EXPECT_EQ(name->Text(), "hf:a/b");
}

TEST(ModelNameTest, Revisions) {
  EXPECT_EQ(ModelName::Parse("hf:a/b:Q8_0")->revision, "main");
  EXPECT_EQ(ModelName::Parse("hf:a/b@main")->Text(), "hf:a/b");
  const std::string commit(40, 'c');
  for (const std::string& revision : {std::string("v1.0"), std::string("refs/pr/1"), commit}) {
    const auto name = ModelName::Parse("hf:a/b@" + revision + ":Q8_0");
    ASSERT_TRUE(name.ok()) << name.status();
    EXPECT_EQ(name->revision, revision);
    EXPECT_EQ(name->Repository(), "a/b");
    EXPECT_EQ(name->choice, "Q8_0");
    EXPECT_EQ(name->Text(), "hf:a/b@" + revision + ":Q8_0");
    EXPECT_EQ(name->pinned(), revision == commit);
  }
  for (const char* revision :
       {"", "../x", "a/../b", ".a", "-a", "/a", "a/", "a//b", "a b", "a%2f", "a@b", "a?b"}) {
    EXPECT_FALSE(ModelName::Parse(std::string("hf:a/b@") + revision).ok()) << revision;
  }
}

TEST(ModelNameTest, PathsAreNoNames) {
  EXPECT_TRUE(ModelName::Is("hf:a/b"));
  for (const char* path : {"model.gguf", "./hf:a/b", "/hf:a", "HF:a/b", ""}) {
    EXPECT_FALSE(ModelName::Is(path)) << path;
  }
}

TEST(ModelNameTest, PartsThatCouldLeaveTheCache) {
  for (const char* text : {"hf:../b", "hf:a/..", "hf:./b", "hf:.a/b", "hf:a/b/c", "hf:/a", "hf:a/",
                           "hf:a--x/b", "hf:a/b..c", "hf:a/b%2f", "hf:a/b c", "hf:a/b:", "hf:"}) {
    EXPECT_EQ(ModelName::Parse(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace tandem::hub
