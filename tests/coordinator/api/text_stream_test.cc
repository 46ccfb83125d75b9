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
