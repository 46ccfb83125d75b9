// BPE over characters: merges against a naive way, line ends, spaces, bytes, streaming.
#include "common/tokenizer/character_bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "common/tokenizer/detokenizer.h"
#include "common/tokenizer/make_tokenizer.h"
#include "tests/common/tokenizer/bpe_reference.h"
#include "tests/common/tokenizer/test_vocabulary.h"

namespace tandem::tokenizer {
namespace {

constexpr TokenId kFirstByte = 4;  // of CharacterVocabulary

using Strings = std::vector<std::string>;

// Merges cross spaces: nothing but a line end cuts the text.
TEST(CharacterBpe, MergesLikeTheNaiveWay) {
  const std::string mark = "\u2581", e = "\u00e9";
  const Strings characters = {mark, "a", "b", e};
  std::mt19937 random(31);
  for (int round = 0; round < 40; ++round) {
    Strings tokens = characters, merges;
    while (merges.size() < 12) {
      const std::string left = tokens[random() % tokens.size()];
      const std::string right = tokens[random() % tokens.size()];
      if (std::find(tokens.begin(), tokens.end(), left + right) != tokens.end()) continue;
      merges.push_back(left + " " + right);
      tokens.push_back(left + right);
    }
    std::shuffle(merges.begin(), merges.end(), random);
    auto tokenizer = MakeTokenizer(CharacterVocabulary(characters, merges)).value();
    for (int i = 0; i < 20; ++i) {
      Strings marked;
      std::string text;
      for (size_t n = random() % 40; n > 0; --n) {
        marked.push_back(characters[random() % characters.size()]);
        text += marked.back() == mark ? " " : marked.back();
      }
      Strings expected = NaiveMerge(marked, merges);
      std::vector<TokenId> ids;
      for (const std::string& part : expected) {
        const auto data = CharacterVocabulary(characters, merges).tokens;
        ids.push_back(
            static_cast<TokenId>(std::find(data.begin(), data.end(), part) - data.begin()));
      }
      EXPECT_EQ(tokenizer->Encode(text, kPlain).value(), ids) << text;
      EXPECT_EQ(Decode(*tokenizer, ids, {}).value(), text);
    }
  }
}

TEST(CharacterBpe, ARunOfLineEndsThatIsATokenIsThatToken) {
  VocabularyData data = CharacterVocabulary({"\n", "a"}, {"\n \n"});
  AddToken(&data, "\n\n\n", TokenType::kNormal);  // no merge makes it
  auto tokenizer = MakeTokenizer(data).value();
  EXPECT_EQ(Parts(*tokenizer, "a\n\n\na"), (Strings{"a", "\n\n\n", "a"}));
  EXPECT_EQ(Parts(*tokenizer, "\n\n"), (Strings{"\n\n"}));
  EXPECT_EQ(Parts(*tokenizer, "\n\n\n\n"), (Strings{"\n\n", "\n\n"}));
}

TEST(CharacterBpe, MergesDoNotCrossLineEnds) {
  auto tokenizer = MakeTokenizer(CharacterVocabulary({"\n", "a"}, {"a \n", "a a"})).value();
  EXPECT_EQ(Parts(*tokenizer, "aa\na"), (Strings{"aa", "\n", "a"}));
}

TEST(CharacterBpe, CharactersWithoutATokenFallBackToBytes) {
  auto tokenizer = MakeTokenizer(CharacterVocabulary({"a"}, {"a a"})).value();
  const auto byte = [](int value) { return static_cast<TokenId>(kFirstByte + value); };
  const TokenId twice = kFirstByte + 257;
  EXPECT_EQ(tokenizer->Encode("aa\u00e9aa", kPlain).value(),
            (std::vector<TokenId>{twice, byte(0xc3), byte(0xa9), twice}));
  // A space without a token of its own is that of its mark.
  EXPECT_EQ(tokenizer->Encode(" ", kPlain).value(),
            (std::vector<TokenId>{byte(0xe2), byte(0x96), byte(0x81)}));

  VocabularyData incomplete = CharacterVocabulary({"a"}, {});
  incomplete.tokens[kFirstByte + 0xa9] = "b";
  incomplete.types[kFirstByte + 0xa9] = static_cast<int32_t>(TokenType::kNormal);
  const absl::Status status = MakeTokenizer(incomplete).value()->Encode("\u00e9", kPlain).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("0xa9"), std::string::npos) << status;
}

TEST(CharacterBpe, StreamsCharactersThatAreSpreadOverTokens) {
  auto tokenizer = MakeTokenizer(CharacterVocabulary({"\u2581", "a"}, {"\u2581 a"})).value();
  const std::vector<TokenId> ids = tokenizer->Encode(" a\U0001f680 a", kPlain).value();
  ASSERT_EQ(ids.size(), 6u);
  IncrementalDetokenizer detokenizer(*tokenizer, {});
  Strings pieces;
  for (TokenId id : ids) pieces.push_back(detokenizer.Append(id).value());
  EXPECT_EQ(pieces, (Strings{" a", "", "", "", "\U0001f680", " a"}));
  EXPECT_EQ(detokenizer.Flush(), "");
}

TEST(CharacterBpe, BosIsAlwaysAddedAndThePreTokenizerIgnored) {
  VocabularyData data = CharacterVocabulary({"a"}, {});
  data.add_bos = false;
  data.pre = "no such name";
  auto tokenizer = MakeTokenizer(data).value();
  EXPECT_EQ(tokenizer->Encode("a", {}).value(), (std::vector<TokenId>{2, kFirstByte + 256}));
  EXPECT_EQ(tokenizer->Encode("a", kPlain).value(), (std::vector<TokenId>{kFirstByte + 256}));
  EXPECT_EQ(tokenizer->special_tokens().eos, 1);
  EXPECT_EQ(tokenizer->special_tokens().unknown, 3);
  EXPECT_EQ(tokenizer->special_tokens().padding, 0);
  EXPECT_FALSE(tokenizer->adds_space_prefix());
}

TEST(CharacterBpe, BrokenMergesAreNamed) {
  for (const char* merge : {"a", "a ", "a b", " a"}) {
    VocabularyData data = CharacterVocabulary({"a"}, {});
    data.merges = {merge};
    const absl::Status status = MakeTokenizer(data).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << merge;
    EXPECT_NE(std::string(status.message()).find("merge 0"), std::string::npos) << status;
  }
}

// A million characters between two line ends are one piece; merging all neighbours at each step
// would not end.
TEST(CharacterBpe, ALongPieceTakesLittleTime) {
  auto tokenizer = MakeTokenizer(CharacterVocabulary({"a"}, {"a a", "aa aa", "aaaa aaaa"})).value();
  EXPECT_EQ(tokenizer->Encode(std::string(1 << 20, 'a'), kPlain).value().size(), (1u << 20) / 8);
}

}  // namespace
}  // namespace tandem::tokenizer
