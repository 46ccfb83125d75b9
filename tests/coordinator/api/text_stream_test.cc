#include "coordinator/api/text_stream.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/coordinator/api/serving_model_for_test.h"

namespace tandem::coordinator {
namespace {

// A stream and its accumulated updates.
class Reader {
 public:
  Reader(const ServingModel& model, const Sampling& sampling)
      : stream_(TextStream::Create(*model.tokenizer, sampling).value()) {}

  // True while the stream accepts more.
  bool Send(StreamUpdate update) {
    gathered_.Append(stream_.Convert(std::move(update)));
    return !stream_.ended();
  }
  // One update for each token, in the middle of an answer.
  bool Send(const std::vector<TokenId>& tokens) {
    for (const TokenId token : tokens) {
      if (!Send(StreamUpdate{.tokens = {token}})) return false;
    }
    return true;
  }
  std::optional<TextUpdate> Take() { return gathered_.Take(); }
  bool ended() const { return stream_.ended(); }

 private:
  TextStream stream_;
  TextUpdate gathered_;
};

class TextStreamTest : public testing::Test {
 protected:
  Reader Make(std::vector<std::string> stop, std::vector<TokenId> end_ids) {
    Sampling sampling;
    sampling.stop = std::move(stop);
    sampling.end_ids = std::move(end_ids);
    return Reader(model_, sampling);
  }

  const ServingModel model_ = ServingModelForTest();
};

// What ended it: a stop string, in the text or not, an id, or neither.
TEST_F(TextStreamTest, TheEndSaysWhatMatched) {
  Sampling sampling;
  sampling.stop = {"x", "ab"};
  sampling.end_ids = {kEos};
  Reader at_string(model_, sampling);
  EXPECT_FALSE(at_string.Send(Bytes("1abc")));
  TextUpdate end = at_string.Take().value();
  EXPECT_EQ(end.text, "1");
  EXPECT_EQ(end.matched_stop, TextUpdate::Matched("ab"));

  sampling.include_stop = true;
  Reader with_string(model_, sampling);
  EXPECT_FALSE(with_string.Send(Bytes("1abc")));
  end = with_string.Take().value();
  EXPECT_EQ(end.text, "1ab");
  EXPECT_EQ(end.tokens, Bytes("1ab"));
  EXPECT_EQ(end.matched_stop, TextUpdate::Matched("ab"));

  Reader at_id(model_, sampling);
  EXPECT_TRUE(at_id.Send(Bytes("1")));
  at_id.Send(StreamUpdate{.tokens = {kEos}, .reason = FinishReason::kStop});
  end = at_id.Take().value();
  EXPECT_EQ(end.text, "1");
  EXPECT_EQ(end.matched_stop, TextUpdate::Matched(kEos));

  Reader full(model_, sampling);
  full.Send(StreamUpdate{.tokens = {'1'}, .reason = FinishReason::kLength});
  EXPECT_EQ(full.Take()->matched_stop, TextUpdate::Matched());
}

// A stop string that completes before min_tokens is text; one that begins before it may end after.
TEST_F(TextStreamTest, NoStopStringEndsARequestBeforeMinTokens) {
  Sampling sampling;
  sampling.stop = {"ab"};
  sampling.min_tokens = 5;
  Reader stream(model_, sampling);
  EXPECT_TRUE(stream.Send(Bytes("abxa")));
  EXPECT_FALSE(stream.Send(Bytes("b")));
  const TextUpdate all = stream.Take().value();
  EXPECT_EQ(all.text, "abx");
  EXPECT_EQ(all.tokens.size(), 5u);
  EXPECT_EQ(all.reason, FinishReason::kStop);

  Reader unended(model_, sampling);
  EXPECT_TRUE(unended.Send(Bytes("xyab")));
  EXPECT_TRUE(unended.Send(Bytes("c")));
  EXPECT_EQ(unended.Take().value().text, "xyabc");
}

TEST_F(TextStreamTest, TokensBecomeTextAndUsage) {
  Reader stream = Make({}, {kEos});
  EXPECT_FALSE(stream.Take().has_value());
  EXPECT_TRUE(stream.Send(Bytes("hi")));
  const TextUpdate delta = stream.Take().value();
  EXPECT_EQ(delta.text, "hi");
  EXPECT_EQ(delta.tokens, Bytes("hi"));
  EXPECT_FALSE(delta.last());
  EXPECT_FALSE(stream.ended());

  stream.Send(
      StreamUpdate{.tokens = {'!'},
                   .reason = FinishReason::kLength,
                   .usage = {.prompt_tokens = 5, .completion_tokens = 3, .cached_tokens = 4}});
  EXPECT_TRUE(stream.ended());
  const TextUpdate last = stream.Take().value();
  EXPECT_EQ(last.text, "!");
  EXPECT_EQ(last.reason, FinishReason::kLength);
  EXPECT_EQ(last.usage.prompt_tokens, 5u);
  EXPECT_EQ(last.usage.completion_tokens, 3u);
  EXPECT_EQ(last.usage.cached_tokens, 4u);
  EXPECT_FALSE(stream.Take().has_value());
}

TokenLogprobs Logprobs(TokenId id, size_t top_n) {
  return {.token = {.token = id, .logprob = -0.5f, .rank = 3},
          .top = std::vector<step::TokenLogprob>(top_n)};
}

// One token with its log-probabilities.
StreamUpdate WithLogprobs(TokenId id, size_t top_n, FinishReason reason = FinishReason::kNone) {
  return {.tokens = {id}, .logprobs = {Logprobs(id, top_n)}, .reason = reason};
}

TEST_F(TextStreamTest, LogprobsGoWithTheirTokensAndThePromptsWithTheFirst) {
  Sampling sampling;
  sampling.prompt_logprobs = 1;
  Reader stream(model_, sampling);
  stream.Send(StreamUpdate{.prompt_logprobs = std::vector<TokenLogprobs>(2, Logprobs(5, 1))});
  stream.Send(StreamUpdate{.prompt_logprobs = std::vector<TokenLogprobs>(1, Logprobs(6, 1))});
  EXPECT_FALSE(stream.Take().has_value());
  stream.Send(WithLogprobs('h', 0));
  stream.Send(WithLogprobs('i', 0));
  const TextUpdate first = stream.Take().value();
  EXPECT_EQ(first.tokens, Bytes("hi"));
  ASSERT_EQ(first.logprobs.size(), 2u);
  EXPECT_EQ(first.logprobs[1].token.token, 'i');
  ASSERT_EQ(first.prompt_logprobs.size(), 4u);
  EXPECT_EQ(first.prompt_logprobs[0], TokenLogprobs{});
  EXPECT_EQ(first.prompt_logprobs[2].token.token, 5);
  EXPECT_EQ(first.prompt_logprobs[3].token.token, 6);
  stream.Send(WithLogprobs('!', 0, FinishReason::kLength));
  const TextUpdate last = stream.Take().value();
  EXPECT_EQ(last.logprobs.size(), 1u);
  EXPECT_TRUE(last.prompt_logprobs.empty());
  EXPECT_FALSE(stream.Take().has_value());
}

TEST_F(TextStreamTest, ManyLogprobsGoInSeveralTakes) {
  constexpr size_t kTop = 19, kPerTake = kMaxLogprobsPerTake / (kTop + 1);
  Sampling sampling;
  sampling.prompt_logprobs = kTop;
  Reader stream(model_, sampling);
  const size_t num_prompt = kPerTake + 10;
  const size_t num_tokens = 2 * kPerTake + 5;
  const Usage usage = {.prompt_tokens = static_cast<uint32_t>(num_prompt)};
  stream.Send(
      StreamUpdate{.prompt_logprobs = std::vector<TokenLogprobs>(num_prompt - 1, Logprobs(5, kTop)),
                   .usage = usage});
  std::vector<TokenId> ids;
  for (size_t i = 0; i < num_tokens; ++i) {
    ids.push_back(static_cast<TokenId>('a' + i % 26));
    StreamUpdate update = WithLogprobs(
        ids.back(), kTop, i + 1 == num_tokens ? FinishReason::kLength : FinishReason::kNone);
    update.usage = usage;
    stream.Send(std::move(update));
  }
  TextUpdate all;
  int takes = 0;
  while (auto delta = stream.Take()) {
    ++takes;
    EXPECT_FALSE(all.last());
    size_t values = 0;
    for (const auto* list : {&delta->logprobs, &delta->prompt_logprobs}) {
      for (const TokenLogprobs& one : *list) values += 1 + one.top.size();
    }
    EXPECT_LE(values, kMaxLogprobsPerTake);
    EXPECT_EQ(delta->usage.prompt_tokens, usage.prompt_tokens);
    EXPECT_EQ(delta->tokens.size(), delta->logprobs.size());
    EXPECT_TRUE(delta->prompt_logprobs.empty() || all.tokens.empty());
    all.prompt_logprobs.insert(all.prompt_logprobs.end(), delta->prompt_logprobs.begin(),
                               delta->prompt_logprobs.end());
    for (size_t i = 0; i < delta->logprobs.size(); ++i) {
      EXPECT_EQ(delta->logprobs[i].token.token, delta->tokens[i]);
    }
    all.tokens.insert(all.tokens.end(), delta->tokens.begin(), delta->tokens.end());
    all.text += delta->text;
    all.reason = delta->reason;
  }
  EXPECT_EQ(takes, 4);
  EXPECT_EQ(all.prompt_logprobs.size(), num_prompt);
  EXPECT_EQ(all.tokens, ids);
  EXPECT_EQ(all.text, std::string(ids.begin(), ids.end()));
  EXPECT_EQ(all.reason, FinishReason::kLength);
}

TEST_F(TextStreamTest, ASlowReaderGetsOneLargerMessage) {
  Reader stream = Make({}, {});
  const std::string text(1000, 'x');
  EXPECT_TRUE(stream.Send(Bytes(text)));
  const TextUpdate delta = stream.Take().value();
  EXPECT_EQ(delta.text, text);
  EXPECT_EQ(delta.tokens.size(), text.size());
  EXPECT_FALSE(stream.Take().has_value());
}

TEST_F(TextStreamTest, AStopStringOverTokensIsCutOutAndEndsTheRequest) {
  Reader stream = Make({"END"}, {kEos});
  EXPECT_TRUE(stream.Send(Bytes("abEN")));
  EXPECT_EQ(stream.Take()->text, "ab") << "only what may still become a stop string is held back";
  EXPECT_FALSE(stream.Send(Bytes("D")));
  EXPECT_TRUE(stream.ended());
  const TextUpdate last = stream.Take().value();
  EXPECT_EQ(last.text, "");
  EXPECT_EQ(last.tokens, Bytes("D"));
  EXPECT_EQ(last.reason, FinishReason::kStop);
}

TEST_F(TextStreamTest, WhatWasHeldBackComesWhenItIsNoStopString) {
  Reader stream = Make({"END"}, {});
  EXPECT_TRUE(stream.Send(Bytes("EN")));
  EXPECT_EQ(stream.Take()->text, "");
  EXPECT_TRUE(stream.Send(Bytes("x")));
  EXPECT_EQ(stream.Take()->text, "ENx");
  EXPECT_TRUE(stream.Send(Bytes("E")));
  EXPECT_FALSE(stream.Send(StreamUpdate{.tokens = {'N'}, .reason = FinishReason::kLength}));
  EXPECT_EQ(stream.Take()->text, "EN");
}

TEST_F(TextStreamTest, AStopStringOnTheLastTokenIsAStop) {
  Reader stream = Make({"!"}, {});
  stream.Send(StreamUpdate{.tokens = {'!'}, .reason = FinishReason::kLength});
  const TextUpdate last = stream.Take().value();
  EXPECT_EQ(last.reason, FinishReason::kStop);
  EXPECT_EQ(last.text, "");
}

TEST_F(TextStreamTest, AnEndIdIsATokenWithoutText) {
  Reader stream = Make({}, {'b', kEos});
  EXPECT_TRUE(stream.Send(Bytes("a")));
  stream.Send(StreamUpdate{.tokens = {'b'}, .reason = FinishReason::kStop});
  const TextUpdate last = stream.Take().value();
  EXPECT_EQ(last.text, "a");
  EXPECT_EQ(last.tokens, Bytes("ab"));
  EXPECT_EQ(last.reason, FinishReason::kStop);
}

TEST_F(TextStreamTest, ControlTokensAndIdsBeyondTheVocabularyHaveNoText) {
  Reader stream = Make({}, {});
  EXPECT_TRUE(stream.Send({'a', kEos, static_cast<TokenId>(kVocabulary), 'b'}));
  const TextUpdate delta = stream.Take().value();
  EXPECT_EQ(delta.text, "ab");
  EXPECT_EQ(delta.tokens.size(), 4u);
  EXPECT_TRUE(delta.status.ok()) << delta.status;
}

TEST_F(TextStreamTest, ControlTokensGiveTheirNamesOnRequestButNotTheEnd) {
  Sampling sampling;
  sampling.end_ids = {kEos};
  auto stream = TextStream::Create(*model_.tokenizer, sampling, /*skip_special=*/false).value();
  EXPECT_EQ(stream.Convert({.tokens = {'a', kBos, 'b'}}).text, "a<|bos|>b");
  EXPECT_EQ(stream.Convert({.tokens = {kEos}, .reason = FinishReason::kStop}).text, "");
}

TEST_F(TextStreamTest, AnUnfinishedCharacterWaitsAndIsFlushedAtTheEnd) {
  Reader stream = Make({}, {});
  EXPECT_TRUE(stream.Send({0xf0, 0x9f}));
  EXPECT_EQ(stream.Take()->text, "");
  EXPECT_TRUE(stream.Send({0x9a, 0x80, 0xe4}));
  EXPECT_EQ(stream.Take()->text, "\U0001f680");
  stream.Send(StreamUpdate{.tokens = {0xbd}, .reason = FinishReason::kLength});
  EXPECT_EQ(stream.Take()->text, "\uFFFD");
}

TEST_F(TextStreamTest, CancelledFlushesWhatIsLeft) {
  Reader stream = Make({"END"}, {});
  EXPECT_TRUE(stream.Send(Bytes("E")));
  stream.Send(StreamUpdate{.reason = FinishReason::kCancelled, .usage = {.prompt_tokens = 1}});
  const TextUpdate last = stream.Take().value();
  EXPECT_EQ(last.text, "E");
  EXPECT_EQ(last.tokens, Bytes("E"));
  EXPECT_EQ(last.reason, FinishReason::kCancelled);
  EXPECT_EQ(last.usage.prompt_tokens, 1u);
}

TEST_F(TextStreamTest, AnErrorEndsIt) {
  Reader stream = Make({}, {});
  stream.Send(StreamUpdate{.status = absl::UnavailableError("rank 1 is lost")});
  EXPECT_TRUE(stream.ended());
  EXPECT_EQ(stream.Take()->status, absl::UnavailableError("rank 1 is lost"));
}

TEST_F(TextStreamTest, NothingFollowsTheEnd) {
  Reader stream = Make({"b"}, {});
  EXPECT_FALSE(stream.Send(Bytes("ab")));
  stream.Send(StreamUpdate{.reason = FinishReason::kCancelled});
  const TextUpdate last = stream.Take().value();
  EXPECT_EQ(last.reason, FinishReason::kStop);
  EXPECT_EQ(last.text, "a");
  EXPECT_FALSE(stream.Take().has_value());
}

// Tokens that the engine sampled before it learned of the stop, in the same update or later ones.
TEST_F(TextStreamTest, WhatWasDrawnAfterTheStopIsDropped) {
  Sampling sampling;
  sampling.stop = {"END"};
  sampling.logprobs = 0;
  Reader stream(model_, sampling);
  StreamUpdate update{.reason = FinishReason::kLength,
                      .usage = {.prompt_tokens = 2, .completion_tokens = 7, .cached_tokens = 1}};
  for (const TokenId token : Bytes("aENDxyz")) {
    update.tokens.push_back(token);
    update.logprobs.push_back(Logprobs(token, 0));
  }
  EXPECT_FALSE(stream.Send(update));
  EXPECT_FALSE(stream.Send(StreamUpdate{.tokens = {'l'}, .usage = {.completion_tokens = 8}}));
  EXPECT_FALSE(stream.Send(StreamUpdate{.status = absl::UnavailableError("lost")}));
  const TextUpdate last = stream.Take().value();
  EXPECT_EQ(last.text, "a");
  EXPECT_EQ(last.tokens, Bytes("aEND"));
  EXPECT_EQ(last.logprobs.size(), 4u);
  EXPECT_EQ(last.reason, FinishReason::kStop);
  EXPECT_TRUE(last.status.ok());
  EXPECT_EQ(last.usage.prompt_tokens, 2u);
  EXPECT_EQ(last.usage.completion_tokens, 4u);
  EXPECT_EQ(last.usage.cached_tokens, 1u);
  EXPECT_FALSE(stream.Take().has_value());
}

// What is dropped behind the stop were accepted drafts.
TEST_F(TextStreamTest, NoMoreDraftsAreAcceptedThanTokensAreLeft) {
  const auto accepted = [&](uint32_t count) {
    Reader stream = Make({"b"}, {});
    stream.Send(StreamUpdate{
        .tokens = Bytes("abcdef"),
        .usage = {.completion_tokens = 6, .draft_tokens = 7, .accepted_draft_tokens = count}});
    const Usage usage = stream.Take().value().usage;
    EXPECT_EQ(usage.completion_tokens, 2u);
    EXPECT_EQ(usage.draft_tokens, 7u);
    return usage.accepted_draft_tokens;
  };
  EXPECT_EQ(accepted(5), 2u) << "the last token of a step is no draft";
  EXPECT_EQ(accepted(3), 0u);
}

// A call ends at once with an error, so what was generated before it must go out first.
TEST_F(TextStreamTest, AnErrorComesAfterTheTokensBeforeIt) {
  Sampling sampling;
  sampling.logprobs = 0;
  Reader stream(model_, sampling);
  StreamUpdate update{.tokens = Bytes("ab")};
  for (const TokenId token : update.tokens) update.logprobs.push_back(Logprobs(token, 0));
  EXPECT_TRUE(stream.Send(update));
  stream.Send(StreamUpdate{.status = absl::DeadlineExceededError("late")});
  const TextUpdate tokens = stream.Take().value();
  EXPECT_EQ(tokens.text, "ab");
  EXPECT_EQ(tokens.logprobs.size(), 2u);
  EXPECT_FALSE(tokens.last());
  const TextUpdate last = stream.Take().value();
  EXPECT_TRUE(absl::IsDeadlineExceeded(last.status));
  EXPECT_TRUE(last.tokens.empty());
}

TEST_F(TextStreamTest, TextThatWasHeldBackGoesOutBeforeAnError) {
  Reader stream = Make({"END"}, {});
  EXPECT_TRUE(stream.Send(Bytes("aEN")));
  EXPECT_EQ(stream.Take()->text, "a");
  stream.Send(StreamUpdate{.status = absl::DeadlineExceededError("late")});
  const TextUpdate text = stream.Take().value();
  EXPECT_EQ(text.text, "EN");
  EXPECT_FALSE(text.last());
  EXPECT_TRUE(absl::IsDeadlineExceeded(stream.Take()->status));
}

// One update may hold tokens up to a stop string and an error of what was drawn after it.
TEST_F(TextStreamTest, AnErrorAfterTheStopIsOfNobody) {
  Reader stream = Make({"END"}, {});
  stream.Send(StreamUpdate{.tokens = Bytes("aEND"), .status = absl::InternalError("not finite")});
  const TextUpdate last = stream.Take().value();
  EXPECT_EQ(last.reason, FinishReason::kStop);
  EXPECT_TRUE(last.status.ok());
}

TEST_F(TextStreamTest, BadStopStringsAreInvalid) {
  Sampling sampling;
  sampling.stop = {std::string(70000, 'x')};
  EXPECT_TRUE(absl::IsInvalidArgument(TextStream::Create(*model_.tokenizer, sampling).status()));
}

}  // namespace
}  // namespace tandem::coordinator
