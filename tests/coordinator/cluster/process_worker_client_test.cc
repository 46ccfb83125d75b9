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
  link->Deliver(ResultOf(Epoch{1}, 7));
  link->Deliver(ResultOf(Epoch{2}, 1));
  const auto result = client.Collect(Deadline::After(std::chrono::seconds(60)));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->epoch, Epoch{2});
  EXPECT_EQ(result->step_id, StepId{1});
  // A late result alone is neither a reply nor a loss.
  link->Deliver(ResultOf(Epoch{1}, 8));
  EXPECT_EQ(client.Collect(Deadline::After(Duration::zero())).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace tandem::coordinator
