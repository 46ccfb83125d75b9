// Score over a real connection, with an engine that the test plays.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/coordinator/api/grpc_server_fixture.h"

namespace tandem::coordinator {
namespace {

v1::ScoreRequest Request(const std::string& id, const std::vector<std::string>& continuations) {
  v1::ScoreRequest request;
  request.set_request_id(id);
  request.set_text("hi");
  for (const std::string& text : continuations) request.add_continuations()->set_text(text);
  return request;
}

TokenLogprobs Scored(TokenId token, float logprob, TokenId likeliest) {
  return {.token = {.token = token, .logprob = logprob, .rank = token == likeliest ? 1u : 2u},
          .top = {{.token = likeliest, .logprob = -0.25f, .rank = 1}}};
}

class GrpcScoreTest : public GrpcServerTest {
 protected:
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::ScoreResponse>> reader;
  };
  std::unique_ptr<Call> Score(const v1::ScoreRequest& request) {
    auto call = std::make_unique<Call>();
    SetDeadline(call->context);
    call->reader = stub_->Score(&call->context, request);
    return call;
  }
  // Of a call that gives no message.
  grpc::Status Refusal(const v1::ScoreRequest& request) {
    const auto call = Score(request);
    v1::ScoreResponse response;
    EXPECT_FALSE(call->reader->Read(&response));
    return call->reader->Finish();
  }
};

TEST_F(GrpcScoreTest, EachContinuationHasItsTokensAndTheirSum) {
  const auto call = Score(Request("a", {"xy", "z"}));
  const std::vector<coordinator::Request> requests = engine_.WaitForRequests(2);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].id, "a");
  EXPECT_EQ(requests[0].targets, Bytes("xy"));
  EXPECT_EQ(requests[1].id, "a#1");
  EXPECT_EQ(requests[1].targets, Bytes("z"));
  const auto end = [&](const std::string& id, std::vector<TokenLogprobs> scored) {
    Send(*engine_.Leave(id), {.prompt_logprobs = std::move(scored),
                              .reason = FinishReason::kLength,
                              .usage = {.prompt_tokens = 4, .cached_tokens = 2}});
  };
  // The second is done first, the first in two steps.
  end("a#1", {Scored('z', -0.25f, 'z')});
  Send(*requests[0].stream, {.prompt_logprobs = {Scored('x', -0.25f, 'x')}});
  end("a", {Scored('y', -1.5f, 'q')});
  std::map<int, v1::ScoreResponse> answers;
  for (v1::ScoreResponse response; call->reader->Read(&response);) {
    EXPECT_FALSE(answers.contains(response.index()));
    answers[response.index()] = response;
  }
  EXPECT_TRUE(call->reader->Finish().ok());
  ASSERT_EQ(answers.size(), 2u);
  const v1::ScoreResponse& first = answers[0];
  EXPECT_EQ(first.request_id(), "a");
  ASSERT_EQ(first.tokens_size(), 2);
  EXPECT_EQ(first.tokens(0).ShortDebugString(),
            "token_id: 120 logprob: -0.25 rank: 1 is_greedy: true");
  EXPECT_EQ(first.tokens(1).ShortDebugString(), "token_id: 121 logprob: -1.5 rank: 2");
  EXPECT_EQ(first.logprob(), -1.75);
  EXPECT_FALSE(first.is_greedy());
  EXPECT_EQ(first.finish_reason(), v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(first.usage().ShortDebugString(), "prompt_tokens: 5 cached_tokens: 2");
  EXPECT_TRUE(answers[1].is_greedy());
  EXPECT_EQ(answers[1].logprob(), -0.25);
}

// A client takes messages of 4 MiB.
TEST_F(GrpcScoreTest, ManyTokensComeInSeveralMessages) {
  const auto call = Score(Request("a", {"x"}));
  WaitForStream();
  constexpr int kTokens = 120'000;
  Send(*engine_.Leave("a"),
       {.prompt_logprobs = std::vector<TokenLogprobs>(kTokens, Scored('x', -0.5f, 'x')),
        .reason = FinishReason::kLength});
  int num_tokens = 0, num_messages = 0;
  v1::ScoreResponse response;
  while (call->reader->Read(&response)) {
    EXPECT_LT(response.ByteSizeLong(), size_t{1} << 20);
    EXPECT_EQ(response.has_usage(), num_tokens + response.tokens_size() == kTokens);
    num_tokens += response.tokens_size();
    ++num_messages;
  }
  EXPECT_TRUE(call->reader->Finish().ok());
  EXPECT_EQ(num_tokens, kTokens);
  EXPECT_GT(num_messages, 1);
  EXPECT_EQ(response.logprob(), -0.5 * kTokens);
  EXPECT_TRUE(response.is_greedy());
}

// As when the server ends: a part of the tokens is no sum of all.
TEST_F(GrpcScoreTest, ACancelledContinuationHasNoSum) {
  const auto call = Score(Request("a", {"xy"}));
  WaitForStream();
  Send(*engine_.Leave("a"),
       {.prompt_logprobs = {Scored('x', -0.25f, 'x')}, .reason = FinishReason::kCancelled});
  v1::ScoreResponse response;
  ASSERT_TRUE(call->reader->Read(&response));
  EXPECT_EQ(response.finish_reason(), v1::FINISH_REASON_CANCELLED);
  EXPECT_FALSE(response.has_logprob());
  EXPECT_FALSE(response.has_is_greedy());
}

TEST_F(GrpcScoreTest, OneFailureEndsTheCallAndTheOthers) {
  const auto call = Score(Request("a", {"x", "y"}));
  engine_.WaitForRequests(2);
  engine_.Fail("a#1", absl::InternalError("not finite"));
  v1::ScoreResponse response;
  EXPECT_FALSE(call->reader->Read(&response));
  EXPECT_EQ(call->reader->Finish().error_message(), "not finite");
  EXPECT_EQ(engine_.WaitForCancel(), std::vector<std::string>{"a"});
}

TEST_F(GrpcScoreTest, ACancelledCallCancelsEveryRequest) {
  const auto call = Score(Request("a", {"x", "y"}));
  engine_.WaitForRequests(2);
  call->context.TryCancel();
  EXPECT_EQ(engine_.WaitForCancels(2).size(), 2u);
  EXPECT_EQ(call->reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(GrpcScoreTest, WhatCannotBeScoredIsRefused) {
  grpc::Status status = Refusal(Request("a", {}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "the request has 0 continuations, it must have 1 to 128");
  EXPECT_EQ(Refusal(Request("a", std::vector<std::string>(129, "x"))).error_message(),
            "the request has 129 continuations, it must have 1 to 128");
  v1::ScoreRequest without_prompt = Request("a", {"x"});
  without_prompt.clear_prompt();
  EXPECT_EQ(Refusal(without_prompt).error_message(),
            "the request has no prompt: set text or token_ids");
  v1::ScoreRequest unset = Request("a", {"x"});
  unset.add_continuations();
  EXPECT_EQ(Refusal(unset).error_message(), "continuations[1]: set text or token_ids");
}

}  // namespace
}  // namespace tandem::coordinator
