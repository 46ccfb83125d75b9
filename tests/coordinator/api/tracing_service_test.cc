// tandem.v1.Tracing over a real connection: how recordings begin and end, and what they stream.
#include "coordinator/api/grpc/tracing_service.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "coordinator/api/grpc/open_calls.h"
#include "coordinator/api/grpc/serving.h"
#include "coordinator/observe/trace_recorder.h"
#include "proto/tandem/v1/trace.grpc.pb.h"
#include "tests/coordinator/api/grpc_server_fixture.h"

namespace tandem::coordinator {
namespace {

constexpr double kLong = 60;

class TracingServiceTest : public GrpcServerTest {
 protected:
  void SetUp() override {
    Listen();
    server_->Serve(ServingModelForTest(), engine_, 1024, &recorder_);
    tracing_ = v1::Tracing::NewStub(channel_);
  }
  void TearDown() override { server_ = nullptr; }  // the recorder outlives it

  // A Trace call.
  struct Call {
    Call(v1::Tracing::Stub& stub, double seconds) {
      SetDeadline(context);
      v1::TraceRequest request;
      request.set_seconds(seconds);
      reader = stub.Trace(&context, request);
    }
    v1::TraceResponse Read() {
      v1::TraceResponse response;
      EXPECT_TRUE(reader->Read(&response));
      return response;
    }
    // The next message with events.
    v1::TraceResponse ReadEvents() {
      v1::TraceResponse response;
      while (response.events().empty() && reader->Read(&response)) {
      }
      return response;
    }
    grpc::Status Finish() {
      v1::TraceResponse response;
      while (reader->Read(&response)) {
      }
      return reader->Finish();
    }
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::TraceResponse>> reader;
  };

  void AwaitNone() {
    const Deadline deadline = Deadline::After(std::chrono::seconds(60));
    while (recorder_.recording() != 0 && !deadline.Passed()) {
    }
    EXPECT_EQ(recorder_.recording(), 0u);
  }

  TraceRecorder recorder_;
  std::unique_ptr<v1::Tracing::Stub> tracing_;
};

TEST_F(TracingServiceTest, StreamsWhatHappens) {
  Call call(*tracing_, kLong);
  const v1::TraceResponse first = call.Read();
  EXPECT_EQ(first.start().tensor_parallel_size(), ServingModelForTest().tensor_parallel_size);
  EXPECT_EQ(first.start().model(), ServingModelForTest().name);
  EXPECT_GT(first.start().unix_us(), 0);
  const TimePoint start{std::chrono::microseconds(first.start().clock_us())};
  const uint64_t number = recorder_.recording();
  ASSERT_NE(number, 0u);
  const auto at = [&](int ms) { return start + std::chrono::milliseconds(ms); };
  recorder_.Add(number, StepSubmitted{.step = StepId{7},
                                      .epoch = Epoch{2},
                                      .kind = step::StepKind::kMixed,
                                      .num_sequences = 3,
                                      .prefill_tokens = 10,
                                      .decode_tokens = 4,
                                      .draft_tokens = 2,
                                      .begin = at(-1),
                                      .scheduled = at(1),
                                      .built = at(2),
                                      .submitted = at(3)});
  recorder_.Add(number, RankStep{.rank = 1,
                                 .step = StepId{7},
                                 .epoch = Epoch{2},
                                 .timings = {.received_at_us = 99, .wait_us = 20},
                                 .answered = at(4)});
  recorder_.Add(number,
                RequestChange{.what = RequestChange::What::kEnded, .handle = 5, .reason = "stop"});
  v1::TraceResponse events;
  while (events.events_size() < 3) {
    const v1::TraceResponse more = call.ReadEvents();
    ASSERT_FALSE(more.events().empty());
    events.mutable_events()->MergeFrom(more.events());
  }
  ASSERT_EQ(events.events_size(), 3);
  const v1::StepSubmitted& step = events.events(0).step_submitted();
  EXPECT_EQ(step.step(), 7u);
  EXPECT_EQ(step.epoch(), 2u);
  EXPECT_EQ(step.kind(), v1::StepSubmitted::MIXED);
  EXPECT_EQ(step.num_sequences(), 3u);
  EXPECT_EQ(step.prefill_tokens(), 10u);
  EXPECT_EQ(step.decode_tokens(), 4u);
  EXPECT_EQ(step.draft_tokens(), 2u);
  // clock_us is cut to whole microseconds.
  EXPECT_NEAR(static_cast<double>(step.begin_ns()), -1e6, 1e3);
  EXPECT_NEAR(static_cast<double>(step.submitted_ns()), 3e6, 1e3);
  const v1::RankStep& rank = events.events(1).rank_step();
  EXPECT_EQ(rank.rank(), 1u);
  EXPECT_EQ(rank.received_at_us(), 99u);
  EXPECT_EQ(rank.wait_us(), 20u);
  EXPECT_FALSE(rank.has_collective_us()) << "not measured";
  EXPECT_EQ(events.events(2).request().what(), v1::RequestChange::ENDED);
  EXPECT_EQ(events.events(2).request().reason(), "stop");
  recorder_.Add(number, RankStep{.timings = {.collective_us = 0}});
  const v1::TraceResponse more = call.ReadEvents();
  ASSERT_EQ(more.events_size(), 1);
  EXPECT_TRUE(more.events(0).rank_step().has_collective_us());
  call.context.TryCancel();
  EXPECT_EQ(call.Finish().error_code(), grpc::CANCELLED);
}

TEST_F(TracingServiceTest, EndsInTime) {
  Call call(*tracing_, 0.01);
  EXPECT_TRUE(call.Finish().ok());
  AwaitNone();
}

TEST_F(TracingServiceTest, OneAtATimeAndNoneAfterItsClientIsGone) {
  Call first(*tracing_, kLong);
  EXPECT_TRUE(first.Read().has_start());
  const grpc::Status second = Call(*tracing_, kLong).Finish();
  EXPECT_EQ(second.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_EQ(second.error_message(), "another recording is being made; there is one at a time");
  first.context.TryCancel();
  AwaitNone();
  EXPECT_TRUE(Call(*tracing_, 0.01).Finish().ok());
}

TEST_F(TracingServiceTest, RefusesATimeThatIsNone) {
  for (const double seconds : {0.0, -1.0, 60.01, 1e300, std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity()}) {
    const grpc::Status status = Call(*tracing_, seconds).Finish();
    EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT) << seconds;
    EXPECT_NE(status.error_message().find("it must be above 0 and at most 60"), std::string::npos)
        << status.error_message();
  }
}

TEST_F(TracingServiceTest, ASlowReaderLosesEventsAndIsTold) {
  Call call(*tracing_, kLong);
  EXPECT_TRUE(call.Read().has_start());
  const uint64_t number = recorder_.recording();
  // One message's worth more than there is room for, faster than they are written.
  while (recorder_.recording() == number) {
    for (int i = 0; i < 200'000; ++i) recorder_.Add(number, StepSettled{});
    v1::TraceResponse response = call.ReadEvents();
    if (response.num_dropped() > 0) break;
  }
  EXPECT_EQ(recorder_.recording(), number) << "it goes on";
}

TEST_F(TracingServiceTest, AReaderThatHasStoppedIsCutOffAfterItsTime) {
  OpenCalls calls;
  Serving serving(calls, *state_, nullptr, refusals_);
  serving.Begin(ServingModelForTest(), engine_, 1024, &recorder_);
  TracingService service(serving, /*grace=*/std::chrono::milliseconds(1));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  const auto channel =
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials());
  Call call(*v1::Tracing::NewStub(channel), 2);
  EXPECT_TRUE(call.Read().has_start());
  // More than fits between a server that writes and a client that doesn't read.
  const uint64_t number = recorder_.recording();
  ASSERT_NE(number, 0u);
  const WorkersChange change{.lost = true, .reason = std::string(64, 'x')};
  const Deadline deadline = Deadline::After(std::chrono::seconds(60));
  while (recorder_.recording() == number && !deadline.Passed()) recorder_.Add(number, change);
  EXPECT_NE(recorder_.recording(), number) << "another can record";
  EXPECT_TRUE(calls.WaitNone(deadline));
  EXPECT_EQ(call.Finish().error_code(), grpc::CANCELLED);
}

TEST_F(TracingServiceTest, TheServersEndEndsIt) {
  Call call(*tracing_, kLong);
  EXPECT_TRUE(call.Read().has_start());
  recorder_.Add(recorder_.recording(), StepSettled{.step = StepId{3}});
  server_->Shutdown(Deadline::After(std::chrono::seconds(30)));
  EXPECT_EQ(call.ReadEvents().events_size(), 1) << "what was recorded comes first";
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "the server is shutting down");
}

TEST_F(TracingServiceTest, AServerThatLoadsOrHasNoRecorderRefuses) {
  Listen();
  EXPECT_EQ(Call(*v1::Tracing::NewStub(channel_), 1).Finish().error_code(), grpc::UNAVAILABLE);
  server_->Serve(ServingModelForTest(), engine_, 1024);
  EXPECT_EQ(Call(*v1::Tracing::NewStub(channel_), 1).Finish().error_code(), grpc::UNIMPLEMENTED);
}

}  // namespace
}  // namespace tandem::coordinator
