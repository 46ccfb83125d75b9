#include "common/tokenizer/detokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "common/tokenizer/make_tokenizer.h"
#include "tests/common/tokenizer/test_vocabulary.h"

namespace tandem::tokenizer {
namespace {

constexpr TokenId kFirstPiece = 259;  // of SentencePieceVocabulary

std::unique_ptr<Tokenizer> Spm() {
  return MakeTokenizer(SentencePieceVocabulary({{"\u2581", -1}, {"\u2581a", -2}, {"b", -3}}))
      .value();
}

TEST(Detokenizer, AnUnfinishedCharacterWaits) {
  auto tokenizer = MakeTokenizer(ByteLevelVocabulary({})).value();
  IncrementalDetokenizer detokenizer(*tokenizer, {.skip_special = true, .at_start = false});
  EXPECT_EQ(detokenizer.Append(0xf0).value(), "");
  EXPECT_EQ(detokenizer.Append(0x9f).value(), "");
  EXPECT_EQ(detokenizer.Append(0x9a).value(), "");
  EXPECT_EQ(detokenizer.Append(0x80).value(), "\U0001f680");
  EXPECT_EQ(detokenizer.Append(0xe4).value(), "");
  EXPECT_EQ(detokenizer.Append('x').value(), "\uFFFDx");
  EXPECT_EQ(detokenizer.Append(0xe4).value(), "");
  EXPECT_EQ(detokenizer.Flush(), "\uFFFD");
  EXPECT_EQ(detokenizer.Flush(), "");
}

// Random ids are random bytes: any split of any bytes.
TEST(Detokenizer, PiecesTogetherAreTheWholeAndAlwaysValid) {
  auto tokenizer =
      MakeTokenizer(ByteLevelVocabulary({"\u00f0 \u0141", "\u00e4 \u00bd", "a \u00e4"})).value();
  std::mt19937 random(41);
  for (int i = 0; i < 1000; ++i) {
    std::vector<TokenId> ids;
    std::string bytes;
    for (size_t n = random() % 30; n > 0; --n) {
      // Often an incomplete character.
      const TokenId id = random() % 2 ? static_cast<TokenId>(0x80 + random() % 131)
                                      : static_cast<TokenId>(random() % 259);
      ids.push_back(id);
      bytes += tokenizer->TokenBytes(id).value();
    }
    Utf8Stream stream;
    std::string expected;
    stream.Append(bytes, &expected);
    stream.Flush(&expected);

    IncrementalDetokenizer detokenizer(*tokenizer, {});
    std::string text;
    for (TokenId id : ids) {
      const std::string more = detokenizer.Append(id).value();
      EXPECT_EQ(ValidUtf8Prefix(more), more.size());
      text += more;
    }
    text += detokenizer.Flush();
    EXPECT_EQ(text, expected);
    EXPECT_EQ(Decode(*tokenizer, ids, {}).value(), expected);
  }
}

TEST(Detokenizer, LeadingSpaceGoesOnlyAtTheStart) {
  auto tokenizer = Spm();
  const TokenId space = kFirstPiece, space_a = kFirstPiece + 1;
  EXPECT_EQ(Decode(*tokenizer, {1, space_a, space_a}, {}).value(), "a a");
  EXPECT_EQ(Decode(*tokenizer, {space, space_a}, {}).value(), " a");
  EXPECT_EQ(Decode(*tokenizer, {space_a}, {.skip_special = true, .at_start = false}).value(), " a");
  EXPECT_EQ(Decode(*tokenizer, {kFirstPiece + 2, space_a}, {}).value(), "b a");
}

TEST(Detokenizer, ControlTokensGiveTextOnlyWhenAsked) {
  auto tokenizer = Spm();
  EXPECT_EQ(Decode(*tokenizer, {1, kFirstPiece + 2, 0, 2}, {}).value(), "b");
  EXPECT_EQ(Decode(*tokenizer, {1, kFirstPiece + 2, 2}, {.skip_special = false, .at_start = true})
                .value(),
            "<s>b</s>");
}

TEST(Detokenizer, IdsOutOfRangeLeaveTheStateUnchanged) {
  auto tokenizer = MakeTokenizer(ByteLevelVocabulary({})).value();
  IncrementalDetokenizer detokenizer(*tokenizer, {});
  EXPECT_EQ(detokenizer.Append(0xc3).value(), "");
  const absl::Status status = detokenizer.Append(259).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "token id 259 is outside the vocabulary of 259 tokens");
  EXPECT_EQ(detokenizer.Append(-1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(detokenizer.Append(0xa9).value(), "\u00e9");
  EXPECT_EQ(Decode(*tokenizer, {'a', 1 << 30}, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem::tokenizer
