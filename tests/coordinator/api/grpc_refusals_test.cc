// Calls that are refused are counted, by why.
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "coordinator/api/auth/gate.h"
#include "coordinator/observe/refusal_counts.h"
#include "tests/coordinator/api/grpc_server_fixture.h"
#include "tests/coordinator/api/slow_tokenizer.h"

namespace tandem::coordinator {
namespace {

using Counts = std::map<std::string, int64_t>;

constexpr size_t kTooLong = (1 << 20) + 1;  // for Tokenize

class GrpcRefusalsTest : public GrpcServerTest {
 protected:
  // Those that are not 0.
  Counts Refused() const {
    Counts counts;
    refusals_.ForEach([&](int64_t value, const Metric&, const char*, const char* reason) {
      if (value != 0) counts[reason] = value;
    });
    return counts;
  }
  // The message is there once the call was counted.
  grpc::StatusCode Generate(const v1::GenerateRequest& request, const std::string& token = "") {
    grpc::ClientContext context;
    SetDeadline(context);
    if (!token.empty()) context.AddMetadata(kAuthorization, "Bearer " + token);
    const auto reader = stub_->Generate(&context, request);
    v1::GenerateResponse response;
    while (reader->Read(&response)) {
    }
    return reader->Finish().error_code();
  }
  grpc::StatusCode Tokenize(const std::string& text) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::TokenizeRequest request;
    request.set_text(text);
    v1::TokenizeResponse response;
    return stub_->Tokenize(&context, request, &response).error_code();
  }
  Edge Guarded(const std::string& lines) {
    const std::string path = ::testing::TempDir() + "/tokens";
    std::ofstream(path) << lines;
    return {.gate = std::make_shared<Gate>(TokenStore::Open("--tokens", path).value(), "")};
  }
};

TEST_F(GrpcRefusalsTest, WhatTheEngineDoesNotTake) {
  engine_.Refuse(absl::ResourceExhaustedError("the queue is full"));
  EXPECT_EQ(Generate(Prompt("a")), grpc::StatusCode::RESOURCE_EXHAUSTED);
  v1::GenerateRequest several = Prompt("b");
  several.mutable_sampling()->set_n(3);
  EXPECT_EQ(Generate(several), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Refused(), (Counts{{"queue_full", 2}})) << "calls, not continuations";
  engine_.Refuse(absl::UnavailableError("the server is shutting down"));
  EXPECT_EQ(Generate(Prompt("c")), grpc::StatusCode::UNAVAILABLE);
  engine_.Refuse(absl::InvalidArgumentError("max_tokens"));
  EXPECT_EQ(Generate(Prompt("d")), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Refused(), (Counts{{"queue_full", 2}, {"unavailable", 1}, {"invalid", 1}}));
}

TEST_F(GrpcRefusalsTest, WhatIsNoRequest) {
  EXPECT_EQ(Generate({}), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Tokenize(std::string(kTooLong, 'x')), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Tokenize(std::string(3 * kTooLong, 'x')), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Tokenize("hi"), grpc::StatusCode::OK);
  EXPECT_EQ(Refused(), (Counts{{"invalid", 3}}));
}

TEST_F(GrpcRefusalsTest, CallsThatComeTooEarlyOrTooLate) {
  Listen();
  EXPECT_EQ(Generate(Prompt("early")), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Tokenize("early"), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Refused(), (Counts{{"unavailable", 2}}));
  ServingModel model = ServingModelForTest();
  model.request_timeout = Duration(1);
  Start(std::move(model));
  EXPECT_EQ(Generate(Prompt("late")), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(Refused(), (Counts{{"unavailable", 2}, {"too_late", 1}}));
}

// Of long texts one is being read and one waits; the third finds no room.
TEST_F(GrpcRefusalsTest, TheTokenizersQueueIsFull) {
  ServingModel model = ServingModelForTest();
  auto slow = std::make_shared<SlowTokenizer>(model.tokenizer);
  model.tokenizer = slow;
  Start(std::move(model), {}, /*max_requests=*/1);
  v1::GenerateRequest request = Prompt("a");
  request.set_text(std::string(SlowTokenizer::kLong + 1, 'x'));
  ClientCall read(*stub_, request);
  slow->AwaitStart();
  // Whichever of two comes second is refused, while the other waits.
  request.set_request_id("b");
  ClientCall one(*stub_, request);
  request.set_request_id("c");
  ClientCall other(*stub_, request);
  std::thread reader([&] { one.Finish(); });
  std::thread other_reader([&] { other.Finish(); });
  const Deadline deadline = Deadline::After(std::chrono::seconds(60));
  while (Refused().empty() && !deadline.Passed()) std::this_thread::yield();
  EXPECT_EQ(Refused(), (Counts{{"tokenizer_full", 1}}));
  for (ClientCall* call : {&read, &one, &other}) call->Cancel();
  slow->Release();
  reader.join();
  other_reader.join();
}

TEST_F(GrpcRefusalsTest, CallsByTheirTokens) {
  Start(ServingModelForTest(), Guarded("user generate the-token-of-a-user concurrent=1\n"
                                       "ops admin the-token-of-the-ops\n"));
  EXPECT_EQ(Generate(Prompt("a")), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Generate(Prompt("a"), "nobody"), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Generate(Prompt("a"), "the-token-of-the-ops"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Refused(), (Counts{{"unauthenticated", 3}}));
  grpc::ClientContext context;
  SetDeadline(context);
  context.AddMetadata(kAuthorization, "Bearer the-token-of-a-user");
  const auto running = stub_->Generate(&context, Prompt("running"));
  engine_.WaitForRequests(1);
  EXPECT_EQ(Generate(Prompt("b"), "the-token-of-a-user"), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Refused(), (Counts{{"unauthenticated", 3}, {"rate_limit", 1}}));
  context.TryCancel();
}

TEST_F(GrpcRefusalsTest, WhatIsAnsweredOrLeftIsNotRefused) {
  ClientCall answered(*stub_, Prompt("answered"));
  engine_.WaitForRequests(1);
  engine_.Finish("answered", 'x', FinishReason::kLength, Usage{});
  EXPECT_TRUE(answered.Finish().ok());
  ClientCall left(*stub_, Prompt("left"));
  engine_.WaitForRequests(2);
  left.Cancel();
  engine_.WaitForCancel();
  EXPECT_EQ(Refused(), Counts());
}

}  // namespace
}  // namespace tandem::coordinator
