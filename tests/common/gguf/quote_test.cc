#include "common/gguf/quote.h"

#include <gtest/gtest.h>

namespace tandem::gguf {
namespace {

TEST(CleanTest, WhatIsNoCharacterIsReplaced) {
  EXPECT_EQ(CleanText("caf\u00e9\n"), "caf\u00e9\n");
  EXPECT_EQ(CleanText("a\xff\xe4\xbd"), "a\uFFFD\uFFFD");
}

TEST(CleanTest, ANameHasNoControlCharacters) {
  EXPECT_EQ(CleanName("Llama 3 \u4f60"), "Llama 3 \u4f60");
  EXPECT_EQ(CleanName("a\nb\x1b[2J\x7f"), "a\uFFFDb\uFFFD[2J\uFFFD");
  EXPECT_EQ(CleanName("\u009b2J\u00a0"), "\uFFFD2J\u00a0");
  EXPECT_EQ(CleanName("\xff"), "\uFFFD");
  EXPECT_EQ(CleanName("\xc2"), "\uFFFD");
}

}  // namespace
}  // namespace tandem::gguf
