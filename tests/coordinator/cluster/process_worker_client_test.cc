// A worker over the gRPC transport, using only the link.
#include "coordinator/cluster/process_worker_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/step/codec.h"

namespace tandem::coordinator {
namespace {

v1::WorkerMessage ResultOf(Epoch epoch, uint64_t step_id) {
  step::StepResult result;
  result.epoch = epoch;
  result.step_id = StepId{step_id};
  std::vector<uint8_t> frame;
  step::Serialize(result, frame);
  v1::WorkerMessage message;
  message.set_step_result(frame.data(), frame.size());
  return message;
}

TEST(ProcessWorkerClientTest, LateResultsOfAnEarlierEpochAreDropped) {
  const auto link = std::make_shared<WorkerLink>(
      v1::Hello(), [](v1::CoordinatorMessage) { return absl::OkStatus(); });
  ProcessWorkerClient client(0, link, nullptr);
  config::WorkerConfig config;
  config.transport.step_transport = config::StepTransport::kGrpc;
  ASSERT_TRUE(client.Configure(config, {.epoch = Epoch{2}}).ok());
  // More of them than wait for Collect.
  for (uint64_t step = 1; step <= 10; ++step) link->Deliver(ResultOf(Epoch{1}, step));
  ASSERT_TRUE(client.Start({1}).ok());
  EXPECT_EQ(client.Collect(Deadline::After(Duration::zero())).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  link->Deliver(ResultOf(Epoch{2}, 11));
  const auto result = client.Collect(Deadline::After(std::chrono::seconds(60)));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->epoch, Epoch{2});
  EXPECT_EQ(result->step_id, StepId{11});
}

// A worker elsewhere that is stuck is waited for, for as long as a step may take: meanwhile
// requests are cancelled and the server is stopped.
TEST(ProcessWorkerClientTest, TheWaitForLoadingIsCancelled) {
  SimulatedClock clock;
  const auto link = std::make_shared<WorkerLink>(
      v1::Hello(), [](v1::CoordinatorMessage) { return absl::OkStatus(); });
  ProcessWorkerClient client(0, link, nullptr);
  const Deadline deadline = Deadline::After(std::chrono::seconds(70), clock);
  int polls = 0;
  const absl::Status waited =
      client.AwaitLoading(deadline, deadline, [&] { return ++polls == 20; });
  EXPECT_EQ(waited.code(), absl::StatusCode::kCancelled) << waited;
  EXPECT_LE(clock.Now().time_since_epoch(), std::chrono::seconds(2));
  EXPECT_EQ(client.AwaitLoading(deadline, deadline, nullptr).code(),
            absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace tandem::coordinator
