#include "common/tokenizer/byte_alphabet.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem::tokenizer {
namespace {

TEST(ByteAlphabet, EveryByteHasItsCharacter) {
  EXPECT_EQ(ByteToAlphabet(' '), "\u0120");
  EXPECT_EQ(ByteToAlphabet('\n'), "\u010a");
  EXPECT_EQ(ByteToAlphabet('a'), "a");
  EXPECT_EQ(ByteToAlphabet(0xad), "\u0143");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  EXPECT_EQ(AlphabetToBytes(BytesToAlphabet(all)), all);
}

TEST(ByteAlphabet, OtherTextsStandForThemselves) {
  EXPECT_EQ(AlphabetToBytes("a b"), "a b");
  EXPECT_EQ(AlphabetToBytes("\u0120\u4f60"), "\u0120\u4f60");
  EXPECT_EQ(AlphabetToBytes("\u0144"), "\u0144");
  EXPECT_EQ(AlphabetToBytes("x\xff"), "x\xff");
  EXPECT_EQ(AlphabetToBytes("\xc4"), "\xc4");
}

}  // namespace
}  // namespace tandem::tokenizer
