// Byte-level BPE: merge order against a naive one, round trips, long texts.
#include "common/tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/tokenizer/detokenizer.h"
#include "common/tokenizer/make_tokenizer.h"
#include "common/tokenizer/merge_queue.h"
#include "tests/common/tokenizer/bpe_reference.h"
#include "tests/common/tokenizer/test_vocabulary.h"

namespace tandem::tokenizer {
namespace {

std::vector<std::string> Letters(std::string_view word) {
  std::vector<std::string> letters;
  for (char c : word) letters.emplace_back(1, c);
  return letters;
}

// Random merges over three letters, each of parts that exist already: in any order of ranks, so
// that a merge may make room for a better one.
std::vector<std::string> RandomMerges(std::mt19937& random, size_t count) {
  std::vector<std::string> tokens = {"a", "b", "c"}, merges;
  while (merges.size() < count) {
    const std::string& left = tokens[random() % tokens.size()];
    const std::string& right = tokens[random() % tokens.size()];
    const std::string joined = left + right;
    if (joined.size() > 8) continue;
    if (std::find(tokens.begin(), tokens.end(), joined) != tokens.end()) continue;
    merges.push_back(left + " " + right);
    tokens.push_back(joined);
  }
  std::shuffle(merges.begin(), merges.end(), random);
  return merges;
}

TEST(Bpe, MergesLikeTheNaiveWay) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const std::vector<std::string> merges = RandomMerges(random, 1 + random() % 20);
    auto tokenizer = MakeTokenizer(ByteLevelVocabulary(merges)).value();
    for (int i = 0; i < 20; ++i) {
      std::string word;
      for (size_t n = random() % 40; n > 0; --n) word += static_cast<char>('a' + random() % 3);
      EXPECT_EQ(Parts(*tokenizer, word), NaiveMerge(Letters(word), merges)) << word;
    }
  }
}

TEST(Bpe, MergesALongWordLikeTheNaiveWay) {
  std::mt19937 random(12);
  const std::vector<std::string> merges = RandomMerges(random, 6);
  auto tokenizer = MakeTokenizer(ByteLevelVocabulary(merges)).value();
  std::string word;
  while (word.size() < MergeQueue::kLongWord) word += static_cast<char>('a' + random() % 3);
  EXPECT_EQ(Parts(*tokenizer, word), NaiveMerge(Letters(word), merges));
}

TEST(Bpe, DecodingUndoesEncoding) {
  auto tokenizer =
      MakeTokenizer(ByteLevelVocabulary({"\u0120 a", "a b", "\u0120a b", "\u00e4 \u00bd", "d e"}))
          .value();
  std::mt19937 random(12);
  for (int i = 0; i < 500; ++i) {
    const std::string text = RandomText(random, 50);
    EXPECT_EQ(Decode(*tokenizer, tokenizer->Encode(text, kPlain).value(), {}).value(), text);
  }
}

TEST(Bpe, BosAndEosAsTheVocabularyAsks) {
  VocabularyData data = ByteLevelVocabulary({});
  const TokenId bos = static_cast<TokenId>(*data.bos), eos = static_cast<TokenId>(*data.eos);
  data.add_bos = data.add_eos = true;
  auto tokenizer = MakeTokenizer(data).value();
  EXPECT_EQ(tokenizer->Encode("a", {}).value(), (std::vector<TokenId>{bos, 'a', eos}));
  EXPECT_EQ(tokenizer->Encode("", {}).value(), (std::vector<TokenId>{bos, eos}));
  EXPECT_EQ(tokenizer->Encode("", kPlain).value(), std::vector<TokenId>{});
}

// A word that is a token needs no merges, and a control token's name is no such word.
TEST(Bpe, WholeWordsFirst) {
  VocabularyData data = ByteLevelVocabulary({"c d"}, "llama-bpe");
  data.add_bos = false;
  const TokenId whole = static_cast<TokenId>(data.tokens.size());
  AddToken(&data, "abcd", TokenType::kNormal);
  AddToken(&data, "secret", TokenType::kControl);
  for (const char* pre : {"llama-bpe", "glm4", "tekken"}) {
    data.pre = pre;
    EXPECT_EQ(MakeTokenizer(data).value()->Encode("abcd", {}).value(), std::vector<TokenId>{whole});
  }
  EXPECT_EQ(MakeTokenizer(data).value()->Encode("secret", {}).value().size(), 6u);
  data.pre = "gpt-2";
  EXPECT_EQ(MakeTokenizer(data).value()->Encode("abcd", {}).value(),
            (std::vector<TokenId>{'a', 'b', 256}));
}

TEST(Bpe, ByteWithoutAToken) {
  VocabularyData data = ByteLevelVocabulary({});
  data.tokens['q'] = "nothing";
  auto tokenizer = MakeTokenizer(data).value();
  EXPECT_TRUE(tokenizer->Encode("abc", kPlain).ok());
  const absl::Status status = tokenizer->Encode("aqua", kPlain).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "the vocabulary has no token for byte 0x71 of the text");
}

TEST(Bpe, RefusesTextThatIsNotUtf8) {
  auto tokenizer = MakeTokenizer(ByteLevelVocabulary({})).value();
  const absl::Status status = tokenizer->Encode("abcdefghij\xc3(", kPlain).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "the text is not valid UTF-8 at byte 10 of 12");
}

TEST(Bpe, ThreadsShareATokenizer) {
  auto tokenizer = MakeTokenizer(ByteLevelVocabulary({"a b", "ab c"}, "llama-bpe")).value();
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "abc ab <|mine|> 12345 ";
  const std::vector<TokenId> expected = tokenizer->Encode(text, {}).value();
  std::vector<std::vector<TokenId>> found(4);
  std::vector<std::thread> threads;
  for (std::vector<TokenId>& ids : found) {
    threads.emplace_back([&] { ids = tokenizer->Encode(text, {}).value(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<TokenId>& ids : found) EXPECT_EQ(ids, expected);
}

// Going through all neighbours before every merge would need some 10^11 steps here.
TEST(Bpe, AMegabyteOfOneLetter) {
  auto tokenizer =
      MakeTokenizer(ByteLevelVocabulary({"a a", "aa aa", "aaaa aaaa", "\u0120 \u0120"})).value();
  const size_t megabyte = 1 << 20;
  const std::vector<TokenId> ids = tokenizer->Encode(std::string(megabyte, 'a'), kPlain).value();
  EXPECT_EQ(ids, std::vector<TokenId>(megabyte / 8, 258));
  const std::vector<TokenId> spaces = tokenizer->Encode(std::string(megabyte, ' '), kPlain).value();
  EXPECT_EQ(spaces, std::vector<TokenId>(megabyte / 2, 259));
}

}  // namespace
}  // namespace tandem::tokenizer
