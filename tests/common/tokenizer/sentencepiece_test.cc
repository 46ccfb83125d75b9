// SentencePiece BPE: merge order against a naive one, space prefix, byte fallback, long texts.
#include "common/tokenizer/sentencepiece.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/tokenizer/detokenizer.h"
#include "common/tokenizer/make_tokenizer.h"
#include "common/tokenizer/merge_queue.h"
#include "tests/common/tokenizer/test_vocabulary.h"

namespace tandem::tokenizer {
namespace {

constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};
constexpr TokenId kFirstPiece = 259;  // of SentencePieceVocabulary with byte tokens

using Pieces = std::vector<std::pair<std::string, float>>;

std::vector<std::string> NaiveMerge(const std::string& text, const Pieces& pieces) {
  std::map<std::string, float> scores(pieces.begin(), pieces.end());
  std::vector<std::string> parts;
  for (char c : text) parts.emplace_back(1, c);
  while (true) {
    size_t at = parts.size();
    float best = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = scores.find(parts[i] + parts[i + 1]);
      if (found == scores.end()) continue;
      if (at == parts.size() || found->second > best) at = i, best = found->second;
    }
    if (at == parts.size()) return parts;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + at + 1);
  }
}

TEST(SentencePiece, MergesLikeTheNaiveWay) {
  std::mt19937 random(21);
  for (int round = 0; round < 80; ++round) {
    std::map<std::string, float> unique = {{"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}};
    // Few different scores, so that ties are common; few pairs, so that parts are independent.
    for (int i = 0; i < 12; ++i) {
      std::string piece;
      for (size_t n = 2 + random() % 4; n > 0; --n) piece += static_cast<char>('a' + random() % 4);
      unique[piece] = -static_cast<float>(random() % 5);
    }
    const Pieces pieces(unique.begin(), unique.end());
    VocabularyData data = SentencePieceVocabulary(pieces);
    data.add_space_prefix = false;
    auto tokenizer = MakeTokenizer(data).value();
    for (int i = 0; i < 20; ++i) {
      std::string text;
      for (size_t n = random() % 40; n > 0; --n) text += static_cast<char>('a' + random() % 4);
      std::vector<std::string> parts;
      const std::vector<TokenId> ids = tokenizer->Encode(text, kPlain).value();
      for (TokenId id : ids) parts.emplace_back(tokenizer->TokenBytes(id).value());
      EXPECT_EQ(parts, NaiveMerge(text, pieces)) << text;
    }
  }
}

TEST(SentencePiece, MergesALongTextLikeTheNaiveWay) {
  std::mt19937 random(23);
  const Pieces pieces = {{"a", 0},    {"b", 0},   {"ab", -2},  {"ba", -1},
                         {"aab", -1}, {"bb", -3}, {"aba", -2}, {"aa", -2}};
  VocabularyData data = SentencePieceVocabulary(pieces);
  data.add_space_prefix = false;
  auto tokenizer = MakeTokenizer(data).value();
  std::string text;
  while (text.size() < MergeQueue::kLongWord) text += static_cast<char>('a' + random() % 2);
  std::vector<std::string> parts;
  const std::vector<TokenId> ids = tokenizer->Encode(text, kPlain).value();
  for (TokenId id : ids) parts.emplace_back(tokenizer->TokenBytes(id).value());
  EXPECT_EQ(parts, NaiveMerge(text, pieces));
}

TEST(SentencePiece, SpacePrefixAfterEverySpecialToken) {
  VocabularyData data =
      SentencePieceVocabulary({{"\u2581", -1}, {"a", -2}, {"\u2581a", -3}, {"b", -4}});
  auto tokenizer = MakeTokenizer(data).value();
  const TokenId a = kFirstPiece + 1, space_a = kFirstPiece + 2;
  EXPECT_TRUE(tokenizer->adds_space_prefix());
  EXPECT_EQ(tokenizer->Encode("a", {}).value(), (std::vector<TokenId>{1, space_a}));
  EXPECT_EQ(tokenizer->Encode("", {}).value(), std::vector<TokenId>{1});
  EXPECT_EQ(tokenizer->Encode("a</s>a", {.add_special = true, .parse_special = true}).value(),
            (std::vector<TokenId>{1, space_a, 2, space_a}));

  data.add_space_prefix = false;
  tokenizer = MakeTokenizer(data).value();
  EXPECT_FALSE(tokenizer->adds_space_prefix());
  EXPECT_EQ(tokenizer->Encode("a a", kPlain).value(), (std::vector<TokenId>{a, space_a}));
  EXPECT_EQ(Decode(*tokenizer, {space_a, a}, {}).value(), " aa");
}

TEST(SentencePiece, BytesStandInForUnknownCharacters) {
  auto tokenizer = MakeTokenizer(SentencePieceVocabulary({{"\u2581", -1}, {"a", -2}})).value();
  EXPECT_EQ(tokenizer->Encode("a\u00e9", kPlain).value(),
            (std::vector<TokenId>{kFirstPiece, kFirstPiece + 1, 3 + 0xc3, 3 + 0xa9}));

  VocabularyData without = SentencePieceVocabulary({{"\u2581", -1}, {"a", -2}}, false);
  EXPECT_EQ(MakeTokenizer(without).value()->Encode("a\u00e9", kPlain).value(),
            (std::vector<TokenId>{3, 4, 0}));
}

TEST(SentencePiece, TheUnknownTokenIsTheFirstWhereTheFileDoesNotSay) {
  VocabularyData data;
  data.model = "llama";
  data.add_space_prefix = false;
  data.tokens = {"a"};
  data.scores = {0};
  EXPECT_EQ(MakeTokenizer(data).value()->Encode("ab", kPlain).value(),
            (std::vector<TokenId>{0, 0}));
  data.tokens.push_back("?");
  data.scores.push_back(0);
  data.unknown = 1;
  EXPECT_EQ(MakeTokenizer(data).value()->Encode("ab", kPlain).value(),
            (std::vector<TokenId>{0, 1}));
}

// "<s>" can be put together from pieces here; it must stay text all the same.
TEST(SentencePiece, TextNeverMergesIntoAControlToken) {
  VocabularyData data = SentencePieceVocabulary({{"<", -1}, {"s", -2}, {">", -3}, {"<s", -4}});
  data.add_space_prefix = false;
  auto tokenizer = MakeTokenizer(data).value();
  EXPECT_EQ(tokenizer->Encode("<s>", kPlain).value(),
            (std::vector<TokenId>{kFirstPiece + 3, kFirstPiece + 2}));
}

// Gemma: no space prefix, user-defined tokens for runs of spaces and line ends, BOS.
TEST(SentencePiece, UserDefinedTokensAreFoundInPlainTextControlOnesAreNot) {
  VocabularyData data = SentencePieceVocabulary({{"\u2581", -1}, {"a", -2}, {"\u2581a", -3}});
  data.add_space_prefix = false;
  const TokenId first = static_cast<TokenId>(data.tokens.size());
  AddToken(&data, "\n\n", TokenType::kUserDefined, -1000);
  AddToken(&data, "  ", TokenType::kUserDefined, -1000);
  AddToken(&data, "\u2581\u2581\u2581", TokenType::kUserDefined, -1000);
  AddToken(&data, "<start_of_turn>", TokenType::kControl);
  auto tokenizer = MakeTokenizer(data).value();
  const TokenId a = kFirstPiece + 1, space_a = kFirstPiece + 2, newline = 3 + '\n';
  EXPECT_EQ(tokenizer->Encode("a  a\n\n\n", {}).value(),
            (std::vector<TokenId>{1, a, first + 1, a, first, newline}));
  EXPECT_EQ(tokenizer->Encode("a   a", {}).value(),
            (std::vector<TokenId>{1, a, first + 1, space_a}));
  EXPECT_EQ(tokenizer->TokenBytes(first + 1).value(), "  ");
  EXPECT_EQ(tokenizer->TokenBytes(first + 2).value(), "   ");
  const std::string turn = "<start_of_turn>a";
  EXPECT_EQ(tokenizer->Encode(turn, {.add_special = false, .parse_special = true}).value(),
            (std::vector<TokenId>{first + 3, a}));
  const std::vector<TokenId> plain = tokenizer->Encode(turn, kPlain).value();
  for (TokenId id : plain) EXPECT_FALSE(tokenizer->IsControl(id));
  EXPECT_EQ(Decode(*tokenizer, plain, {}).value(), turn);

  data.add_bos = false;
  data.add_eos = true;
  EXPECT_EQ(MakeTokenizer(data).value()->Encode("a", {}).value(), (std::vector<TokenId>{a, 2}));
}

TEST(SentencePiece, DecodingUndoesEncoding) {
  auto tokenizer = MakeTokenizer(SentencePieceVocabulary({{"\u2581", -1},
                                                          {"a", -2},
                                                          {"b", -3},
                                                          {"\u2581a", -4},
                                                          {"\u2581\u2581", -5},
                                                          {"\u4f60", -6}}))
                       .value();
  std::mt19937 random(22);
  for (int i = 0; i < 500; ++i) {
    const std::string text = RandomText(random, 50);
    EXPECT_EQ(Decode(*tokenizer, tokenizer->Encode(text, {}).value(), {}).value(), text);
  }
}

TEST(SentencePiece, AMegabyteOfOneLetter) {
  VocabularyData data =
      SentencePieceVocabulary({{"a", -1}, {"aa", -2}, {"aaaa", -3}, {"\u2581", -4}});
  data.add_space_prefix = false;
  auto tokenizer = MakeTokenizer(data).value();
  const size_t megabyte = 1 << 20;
  EXPECT_EQ(tokenizer->Encode(std::string(megabyte, 'a'), kPlain).value(),
            std::vector<TokenId>(megabyte / 4, kFirstPiece + 2));
  EXPECT_EQ(tokenizer->Encode(std::string(megabyte, ' '), kPlain).value(),
            std::vector<TokenId>(megabyte, kFirstPiece + 3));
}

}  // namespace
}  // namespace tandem::tokenizer
