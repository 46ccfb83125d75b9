#include "coordinator/api/score_request.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/limits.h"
#include "tests/coordinator/api/serving_model_for_test.h"

namespace tandem::coordinator {
namespace {

using Ids = std::vector<TokenId>;

// Each id is a byte, but "ab" and "abc" are 300 and 301 as well: a token may span what a client
// gives in two parts.
class MergingTokenizer final : public tokenizer::Tokenizer {
 public:
  explicit MergingTokenizer(bool add_eos) : bytes_(ServingModelForTest().tokenizer) {
    special_ = bytes_->special_tokens();
    special_.add_eos = add_eos;
  }
  absl::StatusOr<Ids> Encode(std::string_view text,
                             const tokenizer::EncodeOptions& options) const override {
    Ids ids;
    if (options.add_special) ids.push_back(kBos);
    for (size_t at = 0; at < text.size();) {
      const size_t length = text.substr(at, 3) == "abc" ? 3 : text.substr(at, 2) == "ab" ? 2 : 1;
      ids.push_back(length == 1 ? static_cast<unsigned char>(text[at])
                                : static_cast<TokenId>(298 + length));
      at += length;
    }
    if (options.add_special && special_.add_eos) ids.push_back(special_.eos);
    return ids;
  }
  absl::StatusOr<std::string_view> TokenBytes(TokenId id) const override {
    return bytes_->TokenBytes(id);
  }
  int32_t vocab_size() const override { return 302; }
  const tokenizer::SpecialTokens& special_tokens() const override { return special_; }
  bool IsEndOfGeneration(TokenId id) const override { return bytes_->IsEndOfGeneration(id); }
  const Ids& end_of_generation_ids() const override { return bytes_->end_of_generation_ids(); }
  bool IsControl(TokenId id) const override { return bytes_->IsControl(id); }
  bool adds_space_prefix() const override { return false; }
  std::string_view chat_template() const override { return {}; }

 private:
  const std::shared_ptr<const tokenizer::Tokenizer> bytes_;
  tokenizer::SpecialTokens special_;
};

ServingModel Model(bool add_eos = false) {
  ServingModel model = ServingModelForTest();
  model.tokenizer = std::make_shared<MergingTokenizer>(add_eos);
  return model;
}

ScoreParams Params(TextOrIds prompt, std::vector<TextOrIds> continuations) {
  return {
      .request_id = "r", .prompt = std::move(prompt), .continuations = std::move(continuations)};
}

std::string Refusal(ScoreParams params) {
  const auto requests = BuildScoreRequests(std::move(params), Model());
  EXPECT_EQ(requests.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(requests.status().message());
}

TEST(ScoreRequestTest, AContinuationIsWhatFollowsThePrompt) {
  ScoreParams params = Params("xy", {"pq", "r"});
  params.cache_salt = "salt";
  params.adapter = "b";
  ServingModel model = Model();
  model.adapters = {"a", "b"};
  params.priority = 3;
  const auto requests = BuildScoreRequests(params, model);
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 2u);
  const Request& first = (*requests)[0];
  EXPECT_EQ(first.prompt, (Ids{kBos, 'x', 'y', 'p'}));
  EXPECT_EQ(first.targets, (Ids{'p', 'q'}));
  EXPECT_EQ(first.sampling.max_tokens, 0u);
  EXPECT_EQ(first.sampling.prompt_logprobs, 1u);
  EXPECT_FALSE(first.generates());
  EXPECT_EQ((*requests)[1].prompt, (Ids{kBos, 'x', 'y'}));
  EXPECT_EQ((*requests)[1].targets, Ids{'r'});
  EXPECT_EQ(first.id, "r");
  EXPECT_EQ((*requests)[1].id, "r#1");
  for (const Request& request : *requests) {
    EXPECT_EQ(request.cache_salt, "salt");
    EXPECT_EQ(request.adapter, 2u);
    EXPECT_EQ(request.priority, 3);
  }
}

TEST(ScoreRequestTest, ATokenThatSpansPromptAndContinuationIsScored) {
  const auto requests = BuildScoreRequests(Params("xa", {"b", "bcd", "c"}), Model());
  ASSERT_TRUE(requests.ok()) << requests.status();
  EXPECT_EQ((*requests)[0].prompt, (Ids{kBos, 'x'}));
  EXPECT_EQ((*requests)[0].targets, Ids{300});
  EXPECT_EQ((*requests)[1].prompt, (Ids{kBos, 'x', 301}));
  EXPECT_EQ((*requests)[1].targets, (Ids{301, 'd'}));
  EXPECT_EQ((*requests)[2].prompt, (Ids{kBos, 'x', 'a'}));
  EXPECT_EQ((*requests)[2].targets, Ids{'c'});
}

TEST(ScoreRequestTest, IdsAreTakenAsTheyAre) {
  const auto mixed = BuildScoreRequests(Params(Ids{7, 8}, {Ids{9, 10}, "ab"}), Model());
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_EQ((*mixed)[0].prompt, (Ids{7, 8, 9}));
  EXPECT_EQ((*mixed)[0].targets, (Ids{9, 10}));
  EXPECT_EQ((*mixed)[1].targets, Ids{300}) << "without BOS";
  const auto after_text = BuildScoreRequests(Params("xa", {Ids{'b'}}), Model());
  ASSERT_TRUE(after_text.ok()) << after_text.status();
  EXPECT_EQ((*after_text)[0].prompt, (Ids{kBos, 'x', 'a'}));
}

TEST(ScoreRequestTest, NoEosIsAdded) {
  for (const TextOrIds& continuation : {TextOrIds("q"), TextOrIds(Ids{'q'})}) {
    const auto requests = BuildScoreRequests(Params("x", {continuation}), Model(true));
    ASSERT_TRUE(requests.ok()) << requests.status();
    EXPECT_EQ((*requests)[0].prompt, (Ids{kBos, 'x'}));
    EXPECT_EQ((*requests)[0].targets, Ids{'q'});
  }
}

TEST(ScoreRequestTest, WhatCannotBeScoredIsRefused) {
  EXPECT_EQ(Refusal(Params("x", {})), "the request has 0 continuations, it must have 1 to 128");
  EXPECT_EQ(Refusal(Params("x", std::vector<TextOrIds>(129, "y"))),
            "the request has 129 continuations, it must have 1 to 128");
  EXPECT_EQ(Refusal(Params({}, {"y"})), "the request has no prompt: set text or token_ids");
  EXPECT_NE(Refusal(Params("", {"y"})).find("the prompt is empty"), std::string::npos);
  EXPECT_EQ(Refusal(Params("x", {"y", ""})), "continuations[1]: it has no tokens");
  EXPECT_EQ(Refusal(Params("x", {Ids{}})), "continuations[0]: it has no tokens");
  EXPECT_EQ(Refusal(Params("x", {TextOrIds()})), "continuations[0]: set text or token_ids");
  EXPECT_EQ(Refusal(Params(Ids(101, 5), {"y"})),
            "prompt of 101 tokens exceeds the context of 100 tokens");
  EXPECT_EQ(Refusal(Params("x", {Ids(kMaxScoredTokens / 2, 5), Ids(kMaxScoredTokens / 2, 5), "y"})),
            "continuations[2]: the continuations have more than 131072 tokens");
  ScoreParams spans = Params("a", {"b"});
  spans.encode.add_special = false;
  EXPECT_EQ(Refusal(spans),
            "continuations[0]: its first token is also the prompt's: nothing is before it");
  ScoreParams named = Params("x", {"y"});
  named.request_id = "a\nb";
  EXPECT_EQ(Refusal(named), "request_id holds a control character");
}

}  // namespace
}  // namespace tandem::coordinator
