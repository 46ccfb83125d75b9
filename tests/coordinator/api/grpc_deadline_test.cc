// Until when a call is worth an answer, as the engine and the client see it.
#include <chrono>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "tests/coordinator/api/grpc_server_fixture.h"

namespace tandem::coordinator {
namespace {

using GrpcDeadlineTest = GrpcServerTest;

TEST_F(GrpcDeadlineTest, DeadlineAndPriorityReachTheEngine) {
  const TimePoint before = Clock::System().Now();
  v1::GenerateRequest request = Prompt("a");
  request.set_priority(-7);
  request.mutable_sampling()->set_n(2);
  ClientCall call(*stub_, request);
  const std::vector<Request> added = engine_.WaitForRequests(2);
  for (const Request& one : added) {
    EXPECT_EQ(one.priority, -7);
    EXPECT_GT(one.deadline, before);
    // The call's own, on another clock: a minute and a second of slack.
    EXPECT_LE(one.deadline, Clock::System().Now() + std::chrono::seconds(61));
    // A hundredth of the minute, and then some.
    EXPECT_GT(one.deadline_slack, std::chrono::milliseconds(600));
    EXPECT_LT(one.deadline_slack, std::chrono::seconds(1));
  }
}

TEST_F(GrpcDeadlineTest, TheServersTimeoutHoldsForCallsWithoutADeadline) {
  ServingModel model = ServingModelForTest();
  model.request_timeout = std::chrono::seconds(30);
  Start(std::move(model));
  const TimePoint before = Clock::System().Now();
  grpc::ClientContext context;
  const auto reader = stub_->Generate(&context, Prompt("a"));
  const std::vector<Request> added = engine_.WaitForRequests(1);
  ASSERT_EQ(added.size(), 1u);
  EXPECT_GE(added[0].deadline, before + std::chrono::seconds(30));
  EXPECT_LE(added[0].deadline, Clock::System().Now() + std::chrono::seconds(30));
  engine_.Fail("a", absl::DeadlineExceededError("too late"));
  v1::GenerateResponse response;
  EXPECT_FALSE(reader->Read(&response));
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(status.error_message(), "too late");
}

TEST_F(GrpcDeadlineTest, WithoutEitherARequestHasNoDeadline) {
  grpc::ClientContext context;
  const auto reader = stub_->Generate(&context, Prompt("a"));
  const std::vector<Request> added = engine_.WaitForRequests(1);
  ASSERT_EQ(added.size(), 1u);
  EXPECT_EQ(added[0].deadline, TimePoint::max());
  EXPECT_EQ(added[0].priority, 0);
  context.TryCancel();
}

// A text that is still in the queue when its time is over is not read.
TEST_F(GrpcDeadlineTest, WhatComesTooLateIsNotTokenized) {
  ServingModel model = ServingModelForTest();
  model.request_timeout = Duration(1);
  Start(std::move(model));
  ClientCall call(*stub_, Prompt("a"));
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(status.error_message(),
            "the request's deadline (its call's, or --request-timeout) has passed before it was "
            "read");
  EXPECT_TRUE(engine_.cancelled().empty());
}

}  // namespace
}  // namespace tandem::coordinator
