#include "common/gguf/keys.h"

#include <gtest/gtest.h>

namespace tandem::gguf {
namespace {

TEST(KeysTest, TheArchitectureReplacesItsPlace) {
  EXPECT_EQ(KeyFor(keys::kBlockCount, "llama"), "llama.block_count");
  EXPECT_EQ(KeyFor(keys::kHeadCountKv, "qwen3"), "qwen3.attention.head_count_kv");
  EXPECT_EQ(KeyFor(keys::kArchitecture, "llama"), "general.architecture");
}

}  // namespace
}  // namespace tandem::gguf
