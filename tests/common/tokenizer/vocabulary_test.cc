// What a hostile or odd vocabulary does: one clear line, or well-defined tokens; never a crash.
#include "common/tokenizer/vocabulary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "common/tokenizer/make_tokenizer.h"
#include "tests/common/tokenizer/test_vocabulary.h"

namespace tandem::tokenizer {
namespace {

VocabularyData Bpe() { return ByteLevelVocabulary({"h e", "l l", "he ll"}); }
VocabularyData Spm() {
  return SentencePieceVocabulary({{"\u2581", -1}, {"a", -2}, {"b", -3}, {"ab", -4}});
}

struct Defect {
  const char* name;
  VocabularyData (*sound)();
  std::function<void(VocabularyData*)> damage;
  const char* message;  // a part of it
};

class BrokenVocabulary : public testing::TestWithParam<Defect> {};

TEST_P(BrokenVocabulary, IsRefusedInOneLine) {
  const Defect& defect = GetParam();
  ASSERT_TRUE(MakeTokenizer(defect.sound()).ok());
  VocabularyData data = defect.sound();
  defect.damage(&data);
  const absl::Status status = MakeTokenizer(std::move(data)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string message(status.message());
  EXPECT_NE(message.find(defect.message), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

const Defect kDefects[] = {
    {"NoTokens", Bpe, [](auto* d) { d->tokens.clear(); }, "there are no tokens"},
    {"TypesShort", Bpe, [](auto* d) { d->types.pop_back(); }, "the list of token types has"},
    {"TypesLong", Spm, [](auto* d) { d->types.push_back(1); }, "the list of token types has"},
    {"ScoresShort", Spm, [](auto* d) { d->scores.pop_back(); }, "the list of scores has"},
    {"ScoresMissing", Spm, [](auto* d) { d->scores.clear(); }, "needs scores"},
    {"ScoreNan", Spm, [](auto* d) { d->scores[5] = NAN; }, "the score of token 5"},
    {"TypeTooHigh", Bpe, [](auto* d) { d->types[7] = 7; }, "token 7 has type 7"},
    {"TypeNegative", Bpe, [](auto* d) { d->types[7] = -1; }, "token 7 has type -1"},
    {"ByteTokenWithoutByte", Spm, [](auto* d) { d->tokens[3] = "<0xZZ>"; }, "token 3 is of type"},
    {"ByteTokenEmpty", Spm, [](auto* d) { d->tokens[3] = ""; }, "token 3 is of type byte"},
    {"BosOutOfRange", Bpe, [](auto* d) { d->bos = d->tokens.size(); }, "the bos token id is 262"},
    {"EosHuge", Bpe, [](auto* d) { d->eos = uint64_t{1} << 31; }, "the eos token id is 2147483648"},
    {"TokenTooLong", Bpe, [](auto* d) { d->tokens[7] = std::string(65537, 'x'); },
     "token 7 has 65537 bytes, at most 65536"},
    {"SpecialTokensTooLong", Spm,
     [](auto* d) {
       for (int i = 0; i < 65; ++i) {
         AddToken(d, std::string(65535, 'x') + std::to_string(i % 10), TokenType::kUserDefined);
       }
     },
     "the texts of special tokens have 42"},
    {"TooManySuppressed", Bpe,
     [](auto* d) {
       for (int i = 0; i < 65; ++i) d->suppressed.push_back(i);
     },
     "65 tokens are suppressed, at most 64 may be"},
    {"BosWanted", Bpe,
     [](auto* d) {
       d->bos.reset();
       d->add_bos = true;
     },
     "there is no bos token"},
    {"EosWanted", Bpe,
     [](auto* d) {
       d->eos.reset();
       d->add_eos = true;
     },
     "there is no eos token"},
    {"MergeWithoutSpace", Bpe, [](auto* d) { d->merges[1] = "ll"; }, "merge 1 is not two tokens"},
    {"MergeEmpty", Bpe, [](auto* d) { d->merges[1] = ""; }, "merge 1 is not two tokens"},
    {"MergeWithoutRight", Bpe, [](auto* d) { d->merges[1] = "l "; }, "merge 1 is not two tokens"},
    {"MergeLeftUnknown", Bpe, [](auto* d) { d->merges[2] = "hx ll"; }, "left part of merge 2"},
    {"MergeRightUnknown", Bpe, [](auto* d) { d->merges[2] = "he lx"; }, "right part of merge 2"},
    {"MergeResultUnknown", Bpe, [](auto* d) { d->merges[2] = "ll he"; }, "result of merge 2"},
    {"MergeNotUtf8", Bpe, [](auto* d) { d->merges[0] = "\xff \xfe"; }, "left part of merge 0"},
    {"PreUnknown", Bpe, [](auto* d) { d->pre = "my\nown"; }, "is not supported; known: gpt-2, "},
    {"PreMissing", Bpe, [](auto* d) { d->pre = ""; },
     "the file names no pre-tokenizer (key tokenizer.ggml.pre); known: "},
    {"ModelUnknown", Bpe, [](auto* d) { d->model = "be\nrt"; }, "known: gpt2"},
};

INSTANTIATE_TEST_SUITE_P(All, BrokenVocabulary, testing::ValuesIn(kDefects),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(Vocabulary, OddButSoundOnesAreTaken) {
  VocabularyData data = Spm();
  AddToken(&data, "", TokenType::kNormal);
  AddToken(&data, "ab", TokenType::kNormal, -9);    // a duplicate
  AddToken(&data, "\xff\xfe", TokenType::kNormal);  // not UTF-8
  AddToken(&data, std::string("x\0y", 3), TokenType::kUndefined);
  data.scores[3] = -std::numeric_limits<float>::infinity();
  auto tokenizer = MakeTokenizer(data).value();
  const TokenId empty = tokenizer->vocab_size() - 4;
  EXPECT_EQ(tokenizer->TokenBytes(empty).value(), "");
  EXPECT_EQ(tokenizer->TokenBytes(empty + 2).value(), "\xff\xfe");
  EXPECT_EQ(tokenizer->TokenBytes(empty + 3).value(), std::string("x\0y", 3));
  // Of tokens with the same text the last one counts.
  EXPECT_EQ(tokenizer->Encode("ab", {}).value(), (std::vector<TokenId>{1, 259, empty + 1}));
}

TEST(Vocabulary, IdsOutOfRangeAreAnError) {
  auto tokenizer = MakeTokenizer(Bpe()).value();
  for (TokenId id : {-1, tokenizer->vocab_size(), std::numeric_limits<TokenId>::max(),
                     std::numeric_limits<TokenId>::min()}) {
    EXPECT_EQ(tokenizer->TokenBytes(id).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_FALSE(tokenizer->IsControl(id));
    EXPECT_FALSE(tokenizer->IsEndOfGeneration(id));
  }
}

// Published files have a padding of -1, or of the first id behind the vocabulary.
TEST(Vocabulary, IdsThatNothingNeedsMayBeThoseOfNoToken) {
  VocabularyData data = Spm();
  data.padding = 4294967295;
  data.unknown = data.eot = data.eom = data.tokens.size();
  const SpecialTokens special = MakeTokenizer(data).value()->special_tokens();
  EXPECT_EQ(special.padding, kNoToken);
  EXPECT_EQ(special.unknown, 0);
  EXPECT_EQ(special.eot, kNoToken);
  EXPECT_EQ(special.eom, kNoToken);
}

TEST(Vocabulary, SuppressedIdsAreThoseOfTokens) {
  VocabularyData data = Bpe();
  data.suppressed = {7, -1, 5, 7, 1 << 30};
  const auto tokenizer = MakeTokenizer(data).value();
  EXPECT_EQ(
      std::vector<TokenId>(tokenizer->suppressed_ids().begin(), tokenizer->suppressed_ids().end()),
      (std::vector<TokenId>{5, 7}));
}

TEST(Vocabulary, SpecialIdsOfAFileWithoutThem) {
  VocabularyData bpe = Bpe();
  bpe.bos.reset();
  bpe.eos.reset();
  const SpecialTokens none = MakeTokenizer(bpe).value()->special_tokens();
  EXPECT_EQ(none.bos, kNoToken);
  EXPECT_EQ(none.eos, kNoToken);
  EXPECT_FALSE(none.add_bos);

  const SpecialTokens usual = MakeTokenizer(Spm()).value()->special_tokens();
  EXPECT_EQ(usual.unknown, 0);
  EXPECT_EQ(usual.bos, 1);
  EXPECT_EQ(usual.eos, 2);
  EXPECT_TRUE(usual.add_bos);
  EXPECT_FALSE(usual.add_eos);

  VocabularyData tiny;
  tiny.model = "llama";
  tiny.tokens = {"a"};
  tiny.scores = {0};
  const SpecialTokens few = MakeTokenizer(tiny).value()->special_tokens();
  EXPECT_EQ(few.unknown, 0);
  EXPECT_EQ(few.bos, kNoToken);
  EXPECT_FALSE(few.add_bos);
}

TEST(Vocabulary, LlamaBpeAddsBosUnlessDisabled) {
  VocabularyData data = ByteLevelVocabulary({}, "llama-bpe");
  EXPECT_TRUE(MakeTokenizer(data).value()->special_tokens().add_bos);
  data.add_bos = false;
  EXPECT_FALSE(MakeTokenizer(data).value()->special_tokens().add_bos);
}

TEST(Vocabulary, EndsOfGenerationAreFoundByIdAndByText) {
  VocabularyData data = Bpe();
  const TokenId eos = static_cast<TokenId>(*data.eos);
  const TokenId first = static_cast<TokenId>(data.tokens.size());
  AddToken(&data, "<|im_end|>", TokenType::kControl);
  AddToken(&data, "<|eom_id|>", TokenType::kUserDefined);  // wrongly; it is a control token
  AddToken(&data, "<|other|>", TokenType::kControl);
  auto tokenizer = MakeTokenizer(data).value();
  EXPECT_EQ(tokenizer->end_of_generation_ids(), (std::vector<TokenId>{eos, first, first + 1}));
  EXPECT_EQ(tokenizer->special_tokens().eot, first);
  EXPECT_EQ(tokenizer->special_tokens().eom, first + 1);
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(eos));
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(first + 1));
  EXPECT_FALSE(tokenizer->IsEndOfGeneration(first + 2));
  EXPECT_TRUE(tokenizer->IsControl(first + 1));

  data.eot = 5;
  EXPECT_EQ(MakeTokenizer(data).value()->special_tokens().eot, 5);
  EXPECT_TRUE(MakeTokenizer(data).value()->IsEndOfGeneration(5));
}

// gpt-oss: <|end|> ends one message of an answer, not the answer.
TEST(Vocabulary, HarmonyMessagesDoNotEndTheAnswer) {
  VocabularyData data = Bpe();
  const TokenId eos = static_cast<TokenId>(*data.eos);
  const TokenId end = static_cast<TokenId>(data.tokens.size());
  AddToken(&data, "<|end|>", TokenType::kControl);
  EXPECT_TRUE(MakeTokenizer(data).value()->IsEndOfGeneration(end));
  AddToken(&data, "<|return|>", TokenType::kControl);
  AddToken(&data, "<|call|>", TokenType::kControl);
  auto tokenizer = MakeTokenizer(data).value();
  EXPECT_EQ(tokenizer->end_of_generation_ids(), (std::vector<TokenId>{eos, end + 1, end + 2}));
  EXPECT_TRUE(tokenizer->IsControl(end));
}

TEST(Vocabulary, SolarOpensMessagesDoNotEndTheAnswer) {
  VocabularyData data = Bpe();
  const TokenId eos = static_cast<TokenId>(*data.eos);
  const TokenId end = static_cast<TokenId>(data.tokens.size());
  for (const char* text : {"<|end|>", "<|flush|>", "<|calls|>"}) {
    AddToken(&data, text, TokenType::kControl);
  }
  EXPECT_EQ(MakeTokenizer(data).value()->end_of_generation_ids(),
            (std::vector<TokenId>{eos, end + 1, end + 2}));
}

}  // namespace
}  // namespace tandem::tokenizer
