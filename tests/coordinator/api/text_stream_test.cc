#include "coordinator/api/text_stream.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/coordinator/api/serving_model_for_test.h"

namespace tandem::coordinator {
namespace {

class TextStreamTest : public testing::Test {
 protected:
  std::shared_ptr<TextStream> Make(std::vector<std::string> stop, std::vector<TokenId> end_ids) {
    Sampling sampling;
    sampling.stop = std::move(stop);
    sampling.end_ids = std::move(end_ids);
    auto stream = TextStream::Create(*model_.tokenizer, sampling).value();
    stream->OnReady([this] { ++num_wakes_; });
    return stream;
  }

  // Tokens in the middle of an answer; true while the stream wants more.
  static bool Send(TextStream& stream, const std::vector<TokenId>& tokens) {
    for (const TokenId token : tokens) {
      if (!stream.OnToken(token, FinishReason::kNone, Usage{})) return false;
    }
    return true;
  }

  const ServingModel model_ = ServingModelForTest();
  int num_wakes_ = 0;
};

TEST_F(TextStreamTest, TokensBecomeTextAndUsage) {
  auto stream = Make({}, {kEos});
  EXPECT_FALSE(stream->Take().has_value());
  EXPECT_TRUE(Send(*stream, Bytes("hi")));
  const TextDelta delta = stream->Take().value();
  EXPECT_EQ(delta.text, "hi");
  EXPECT_EQ(delta.token_ids, Bytes("hi"));
  EXPECT_FALSE(delta.last());
  EXPECT_FALSE(stream->ended());

  stream->OnToken('!', FinishReason::kLength,
                  {.prompt_tokens = 5, .completion_tokens = 3, .cached_tokens = 4});
  EXPECT_TRUE(stream->ended());
  const TextDelta last = stream->Take().value();
  EXPECT_EQ(last.text, "!");
  EXPECT_EQ(last.reason, FinishReason::kLength);
  EXPECT_EQ(last.usage.prompt_tokens, 5u);
  EXPECT_EQ(last.usage.completion_tokens, 3u);
  EXPECT_EQ(last.usage.cached_tokens, 4u);
  EXPECT_FALSE(stream->Take().has_value());
}

GeneratedToken WithLogprobs(TokenId id, size_t top_n) {
  GeneratedToken token(id);
  token.logprobs.emplace();
  token.logprobs->token = {.token = id, .logprob = -0.5f, .rank = 3};
  token.logprobs->top.resize(top_n);
  return token;
}

TEST_F(TextStreamTest, LogprobsGoWithTheirTokensAndThePromptsWithTheFirst) {
  Sampling sampling;
  sampling.prompt_logprobs = 1;
  auto stream = TextStream::Create(*model_.tokenizer, sampling).value();
  stream->OnReady([this] { ++num_wakes_; });
  stream->OnPromptLogprobs(std::vector<TokenLogprobs>(2, *WithLogprobs(5, 1).logprobs));
  stream->OnPromptLogprobs(std::vector<TokenLogprobs>(1, *WithLogprobs(6, 1).logprobs));
  EXPECT_EQ(num_wakes_, 0);
  EXPECT_FALSE(stream->Take().has_value());
  stream->OnToken(WithLogprobs('h', 0), FinishReason::kNone, Usage{});
  stream->OnToken(WithLogprobs('i', 0), FinishReason::kNone, Usage{});
  const TextDelta first = stream->Take().value();
  EXPECT_EQ(first.token_ids, Bytes("hi"));
  ASSERT_EQ(first.logprobs.size(), 2u);
  EXPECT_EQ(first.logprobs[1].token.token, 'i');
  ASSERT_EQ(first.prompt_logprobs.size(), 4u);
  EXPECT_EQ(first.prompt_logprobs[0], TokenLogprobs{});
  EXPECT_EQ(first.prompt_logprobs[2].token.token, 5);
  EXPECT_EQ(first.prompt_logprobs[3].token.token, 6);
  stream->OnToken(WithLogprobs('!', 0), FinishReason::kLength, Usage{});
  const TextDelta last = stream->Take().value();
  EXPECT_EQ(last.logprobs.size(), 1u);
  EXPECT_TRUE(last.prompt_logprobs.empty());
  EXPECT_FALSE(stream->Take().has_value());
}

TEST_F(TextStreamTest, ManyLogprobsGoInSeveralTakes) {
  constexpr size_t kTop = 19, kPerTake = kMaxLogprobsPerTake / (kTop + 1);
  Sampling sampling;
  sampling.prompt_logprobs = kTop;
  auto stream = TextStream::Create(*model_.tokenizer, sampling).value();
  const size_t num_prompt = kPerTake + 10;
  const size_t num_tokens = 2 * kPerTake + 5;
  stream->OnPromptLogprobs(
      std::vector<TokenLogprobs>(num_prompt - 1, *WithLogprobs(5, kTop).logprobs));
  std::vector<TokenId> ids;
  for (size_t i = 0; i < num_tokens; ++i) {
    ids.push_back(static_cast<TokenId>('a' + i % 26));
    stream->OnToken(WithLogprobs(ids.back(), kTop),
                    i + 1 == num_tokens ? FinishReason::kLength : FinishReason::kNone, Usage{});
  }
  TextDelta all;
  int takes = 0;
  while (auto delta = stream->Take()) {
    ++takes;
    EXPECT_FALSE(all.last());
    size_t values = 0;
    for (const auto* list : {&delta->logprobs, &delta->prompt_logprobs}) {
      for (const TokenLogprobs& one : *list) values += 1 + one.top.size();
    }
    EXPECT_LE(values, kMaxLogprobsPerTake);
    EXPECT_EQ(delta->token_ids.size(), delta->logprobs.size());
    EXPECT_TRUE(delta->prompt_logprobs.empty() || all.token_ids.empty());
    all.prompt_logprobs.insert(all.prompt_logprobs.end(), delta->prompt_logprobs.begin(),
                               delta->prompt_logprobs.end());
    for (size_t i = 0; i < delta->logprobs.size(); ++i) {
      EXPECT_EQ(delta->logprobs[i].token.token, delta->token_ids[i]);
    }
    all.token_ids.insert(all.token_ids.end(), delta->token_ids.begin(), delta->token_ids.end());
    all.text += delta->text;
    all.reason = delta->reason;
  }
  EXPECT_EQ(takes, 4);
  EXPECT_EQ(all.prompt_logprobs.size(), num_prompt);
  EXPECT_EQ(all.token_ids, ids);
  EXPECT_EQ(all.text, std::string(ids.begin(), ids.end()));
  EXPECT_EQ(all.reason, FinishReason::kLength);
}

TEST_F(TextStreamTest, ASlowReaderGetsOneLargerMessage) {
  auto stream = Make({}, {});
  const std::string text(1000, 'x');
  EXPECT_TRUE(Send(*stream, Bytes(text)));
  EXPECT_GE(num_wakes_, 1);
  const TextDelta delta = stream->Take().value();
  EXPECT_EQ(delta.text, text);
  EXPECT_EQ(delta.token_ids.size(), text.size());
  EXPECT_FALSE(stream->Take().has_value());
}

TEST_F(TextStreamTest, AStopStringOverTokensIsCutOutAndEndsTheRequest) {
  auto stream = Make({"END"}, {kEos});
  EXPECT_TRUE(Send(*stream, Bytes("abEN")));
  EXPECT_EQ(stream->Take()->text, "ab") << "only what may still become a stop string is held back";
  EXPECT_FALSE(Send(*stream, Bytes("D")));
  EXPECT_TRUE(stream->ended());
  const TextDelta last = stream->Take().value();
  EXPECT_EQ(last.text, "");
  EXPECT_EQ(last.token_ids, Bytes("D"));
  EXPECT_EQ(last.reason, FinishReason::kStop);
}

TEST_F(TextStreamTest, WhatWasHeldBackComesWhenItIsNoStopString) {
  auto stream = Make({"END"}, {});
  EXPECT_TRUE(Send(*stream, Bytes("EN")));
  EXPECT_EQ(stream->Take()->text, "");
  EXPECT_TRUE(Send(*stream, Bytes("x")));
  EXPECT_EQ(stream->Take()->text, "ENx");
  EXPECT_TRUE(Send(*stream, Bytes("E")));
  EXPECT_FALSE(stream->OnToken('N', FinishReason::kLength, Usage{}));
  EXPECT_EQ(stream->Take()->text, "EN");
}

TEST_F(TextStreamTest, AStopStringOnTheLastTokenIsAStop) {
  auto stream = Make({"!"}, {});
  stream->OnToken('!', FinishReason::kLength, Usage{});
  const TextDelta last = stream->Take().value();
  EXPECT_EQ(last.reason, FinishReason::kStop);
  EXPECT_EQ(last.text, "");
}

TEST_F(TextStreamTest, AnEndIdIsATokenWithoutText) {
  auto stream = Make({}, {'b', kEos});
  EXPECT_TRUE(Send(*stream, Bytes("a")));
  stream->OnToken('b', FinishReason::kStop, Usage{});
  const TextDelta last = stream->Take().value();
  EXPECT_EQ(last.text, "a");
  EXPECT_EQ(last.token_ids, Bytes("ab"));
  EXPECT_EQ(last.reason, FinishReason::kStop);
}

TEST_F(TextStreamTest, ControlTokensAndIdsBeyondTheVocabularyHaveNoText) {
  auto stream = Make({}, {});
  EXPECT_TRUE(Send(*stream, {'a', kEos, static_cast<TokenId>(kVocabulary), 'b'}));
  const TextDelta delta = stream->Take().value();
  EXPECT_EQ(delta.text, "ab");
  EXPECT_EQ(delta.token_ids.size(), 4u);
  EXPECT_TRUE(delta.status.ok()) << delta.status;
}

TEST_F(TextStreamTest, AnUnfinishedCharacterWaitsAndIsFlushedAtTheEnd) {
  auto stream = Make({}, {});
  EXPECT_TRUE(Send(*stream, {0xf0, 0x9f}));
  EXPECT_EQ(stream->Take()->text, "");
  EXPECT_TRUE(Send(*stream, {0x9a, 0x80, 0xe4}));
  EXPECT_EQ(stream->Take()->text, "\U0001f680");
  stream->OnToken(0xbd, FinishReason::kLength, Usage{});
  EXPECT_EQ(stream->Take()->text, "\uFFFD");
}

TEST_F(TextStreamTest, CancelledFlushesWhatIsLeft) {
  auto stream = Make({"END"}, {});
  EXPECT_TRUE(Send(*stream, Bytes("E")));
  stream->OnEnd(absl::OkStatus(), FinishReason::kCancelled, {.prompt_tokens = 1});
  const TextDelta last = stream->Take().value();
  EXPECT_EQ(last.text, "E");
  EXPECT_EQ(last.token_ids, Bytes("E"));
  EXPECT_EQ(last.reason, FinishReason::kCancelled);
  EXPECT_EQ(last.usage.prompt_tokens, 1u);
}

TEST_F(TextStreamTest, AnErrorEndsIt) {
  auto stream = Make({}, {});
  stream->OnEnd(absl::UnavailableError("rank 1 is lost"), FinishReason::kNone, Usage{});
  EXPECT_TRUE(stream->ended());
  EXPECT_EQ(stream->Take()->status, absl::UnavailableError("rank 1 is lost"));
}

TEST_F(TextStreamTest, NothingFollowsTheEnd) {
  auto stream = Make({"b"}, {});
  EXPECT_FALSE(Send(*stream, Bytes("ab")));
  stream->OnEnd(absl::OkStatus(), FinishReason::kCancelled, Usage{});
  const TextDelta last = stream->Take().value();
  EXPECT_EQ(last.reason, FinishReason::kStop);
  EXPECT_EQ(last.text, "a");
  EXPECT_FALSE(stream->Take().has_value());
}

TEST_F(TextStreamTest, BadStopStringsAreInvalid) {
  Sampling sampling;
  sampling.stop = {std::string(70000, 'x')};
  EXPECT_TRUE(absl::IsInvalidArgument(TextStream::Create(*model_.tokenizer, sampling).status()));
}

}  // namespace
}  // namespace tandem::coordinator
