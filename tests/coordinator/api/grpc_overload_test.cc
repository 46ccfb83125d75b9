// Calls that are refused, and clients that do not read.
#include <string>
#include <vector>

#include "proto/google/rpc/error_details.pb.h"
#include "proto/google/rpc/status.pb.h"
#include "tests/coordinator/api/grpc_server_fixture.h"

namespace tandem::coordinator {
namespace {

using GrpcOverloadTest = GrpcServerTest;

// What a refused call says about another try.
std::string RetryDelay(const grpc::Status& refused) {
  google::rpc::Status status;
  google::rpc::RetryInfo retry;
  EXPECT_TRUE(status.ParseFromString(refused.error_details()));
  EXPECT_EQ(status.message(), refused.error_message());
  if (status.details_size() != 1 || !status.details(0).UnpackTo(&retry)) return "none";
  return retry.retry_delay().ShortDebugString();
}

TEST_F(GrpcOverloadTest, ARefusalSaysWhenToTryAgain) {
  engine_.Refuse(absl::ResourceExhaustedError("the queue is full"));
  ClientCall full(*stub_, Prompt("a"));
  EXPECT_EQ(RetryDelay(full.Finish()), "seconds: 1");
  EXPECT_EQ(full.Trailer("grpc-retry-pushback-ms"), "1000");

  engine_.Refuse(absl::UnavailableError("the server is shutting down"));
  ClientCall stopping(*stub_, Prompt("b"));
  EXPECT_EQ(RetryDelay(stopping.Finish()), "nanos: 200000000");
  EXPECT_EQ(stopping.Trailer("grpc-retry-pushback-ms"), "200");

  engine_.Refuse(absl::InvalidArgumentError("max_tokens"));
  ClientCall wrong(*stub_, Prompt("c"));
  EXPECT_EQ(wrong.Finish().error_details(), "");
  EXPECT_EQ(wrong.Trailer("grpc-retry-pushback-ms"), "");

  Listen();
  ClientCall loading(*stub_, Prompt("d"));
  EXPECT_EQ(RetryDelay(loading.Finish()), "nanos: 200000000");
  EXPECT_EQ(loading.Trailer("grpc-retry-pushback-ms"), "200");
}

// The client reads nothing, so that messages fill what gRPC buffers, and then ours.
TEST_F(GrpcOverloadTest, AReaderThatIsTooSlowIsDropped) {
  ServingModel model = ServingModelForTest();
  model.max_stream_bytes = 64 << 10;
  Start(std::move(model));
  ClientCall reading(*stub_, Prompt("reading"));
  const auto other = WaitForStream(1);
  ClientCall slow(*stub_, Prompt("slow"));
  WaitForStream(2);
  const auto stream = engine_.Leave("slow");  // only this thread calls it, also after the cancel
  const StreamUpdate piece{.tokens = Bytes(std::string(1000, 'x'))};
  size_t num_sent = 0;
  while (engine_.cancelled().empty() && num_sent < 100'000) {
    Send(*stream, piece);
    ++num_sent;
  }
  EXPECT_EQ(engine_.WaitForCancel().front(), "slow");
  const grpc::Status dropped = slow.Finish();
  EXPECT_EQ(dropped.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(dropped.error_message().find("at most 65536 (--max-stream-buffer)"), std::string::npos)
      << dropped.error_message();

  Send(*other, {.tokens = {'o'}});
  engine_.Finish("reading", 'k', FinishReason::kLength, Usage{});
  EXPECT_EQ(reading.ReadAll().text(), "ok");
  EXPECT_TRUE(reading.Finish().ok());
}

}  // namespace
}  // namespace tandem::coordinator
