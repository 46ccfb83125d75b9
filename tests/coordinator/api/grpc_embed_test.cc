// Embed over a real connection, with an engine that the test plays.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/coordinator/api/grpc_server_fixture.h"

namespace tandem::coordinator {
namespace {

class GrpcEmbedTest : public GrpcServerTest {
 protected:
  static v1::EmbedRequest Request(const std::string& id, const std::vector<std::string>& inputs) {
    v1::EmbedRequest request;
    request.set_request_id(id);
    for (const std::string& text : inputs) request.add_inputs()->set_text(text);
    return request;
  }

  void Ask(const v1::EmbedRequest& request) {
    context_ = std::make_unique<grpc::ClientContext>();
    SetDeadline(*context_);
    reader_ = stub_->Embed(context_.get(), request);
  }
  std::map<int, v1::EmbedResponse> ReadAll() {
    std::map<int, v1::EmbedResponse> answers;
    for (v1::EmbedResponse response; reader_->Read(&response);) {
      EXPECT_TRUE(answers.emplace(response.index(), response).second);
    }
    return answers;
  }
  void End(const std::string& id, std::vector<float> embedding) {
    Send(*engine_.Leave(id), {.embedding = std::move(embedding),
                              .reason = FinishReason::kLength,
                              .usage = {.prompt_tokens = 3, .cached_tokens = 2}});
  }

  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReader<v1::EmbedResponse>> reader_;
};

TEST_F(GrpcEmbedTest, EachInputHasItsVector) {
  Ask(Request("a", {"x", "y"}));
  ASSERT_EQ(engine_.WaitForRequests(2)[0].pooling, Pooling::kLast);
  End("a#1", {0, 2, 0, 0, 0, 0});
  End("a", {3, 4, 0, 0, 0, 0});
  auto answers = ReadAll();
  EXPECT_TRUE(reader_->Finish().ok());
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].request_id(), "a");
  ASSERT_EQ(answers[0].embedding_size(), 6);
  EXPECT_EQ(answers[0].embedding(0), 0.6f);
  EXPECT_EQ(answers[0].embedding(1), 0.8f);
  EXPECT_EQ(answers[0].finish_reason(), v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(answers[0].usage().ShortDebugString(), "prompt_tokens: 3 cached_tokens: 2");
  EXPECT_EQ(answers[1].embedding(1), 1.0f);
}

TEST_F(GrpcEmbedTest, AsTheRequestAsks) {
  v1::EmbedRequest request = Request("a", {"x"});
  request.set_pooling(v1::POOLING_MEAN);
  request.set_dimensions(2);
  request.set_normalize(false);
  Ask(request);
  EXPECT_EQ(engine_.WaitForRequests(1)[0].pooling, Pooling::kMean);
  End("a", {3, 4, 5, 6, 7, 8});
  const auto answers = ReadAll();
  ASSERT_EQ(answers.at(0).embedding_size(), 2);
  EXPECT_EQ(answers.at(0).embedding(1), 4.0f);
}

TEST_F(GrpcEmbedTest, AnEndOfTheServerIsNoVector) {
  Ask(Request("a", {"x"}));
  engine_.WaitForRequests(1);
  Send(*engine_.Leave("a"), {.reason = FinishReason::kCancelled});
  const auto answers = ReadAll();
  EXPECT_EQ(answers.at(0).finish_reason(), v1::FINISH_REASON_CANCELLED);
  EXPECT_EQ(answers.at(0).embedding_size(), 0);
}

TEST_F(GrpcEmbedTest, ACancelledCallCancelsEveryRequest) {
  Ask(Request("a", {"x", "y"}));
  engine_.WaitForRequests(2);
  context_->TryCancel();
  EXPECT_EQ(engine_.WaitForCancels(2).size(), 2u);
  EXPECT_EQ(reader_->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(GrpcEmbedTest, WhatCannotBeEmbeddedIsRefused) {
  const auto refusal = [&](const v1::EmbedRequest& request) {
    Ask(request);
    EXPECT_TRUE(ReadAll().empty());
    const grpc::Status status = reader_->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  EXPECT_EQ(refusal(Request("a", {})), "the request has 0 inputs, it must have 1 to 128");
  EXPECT_EQ(refusal(Request("a", {"x", ""})), "inputs[1]: it has no tokens");
  v1::EmbedRequest request = Request("a", {"x"});
  request.set_dimensions(7);
  EXPECT_EQ(refusal(request), "dimensions is 7, it must be from 1 to 6");
  request = Request("a", {"x"});
  request.set_pooling(static_cast<v1::Pooling>(9));
  EXPECT_EQ(refusal(request), "pooling is 9, it must be from 0 to 3");
}

}  // namespace
}  // namespace tandem::coordinator
