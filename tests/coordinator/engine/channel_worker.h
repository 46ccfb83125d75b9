// ChannelWorker: the coordinator's own client of a worker, and behind its real step channel (shared
// memory, or a control stream without a socket) a thread that parses, validates and applies every
// step as a worker process does, computes nothing, and answers each sampled row with token 1. For
// what a step costs the coordinator, and how large its frames are.
#ifndef TANDEM_TESTS_COORDINATOR_ENGINE_CHANNEL_WORKER_H_
#define TANDEM_TESTS_COORDINATOR_ENGINE_CHANNEL_WORKER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/step/block_tables.h"
#include "common/transport/queue_channel.h"
#include "coordinator/cluster/process_worker_client.h"

namespace tandem::coordinator {

class ChannelWorker : public WorkerClient {
 public:
  ChannelWorker(int rank, uint32_t vocab_size, const std::vector<uint32_t>& windows,
                std::vector<uint32_t> num_blocks);
  ~ChannelWorker() override;

  int rank() const override { return client_.rank(); }
  absl::Status Configure(const config::WorkerConfig& config,
                         const config::WorkerAssignment& assignment) override;
  absl::Status StartLoad() override { return absl::OkStatus(); }
  absl::Status AwaitLoading(Deadline, Deadline, const std::function<bool()>&) override {
    return absl::OkStatus();
  }
  absl::StatusOr<WorkerReady> FinishLoad(Deadline deadline) override;
  absl::Status Start(const std::vector<uint32_t>& num_blocks) override;
  absl::Status FinishStart(Deadline) override { return absl::OkStatus(); }
  absl::Status Submit(std::span<const uint8_t> frame, Deadline deadline) override;
  absl::StatusOr<step::StepResult> Collect(Deadline deadline) override;
  void Ping() override { client_.Ping(); }
  bool WaitPong(Deadline deadline) override { return client_.WaitPong(deadline); }
  absl::Status Health() const override { return client_.Health(); }
  void Kill() override {}
  void Abort(const absl::Status& reason) override;

  // Bytes of the largest and of the last step that was submitted, and of the largest that may be.
  size_t largest_frame() const { return largest_frame_; }
  size_t last_frame() const { return last_frame_; }
  size_t max_descriptor_bytes() const { return limits_.MaxDescriptorBytes(); }

 private:
  // What the coordinator puts on the control stream.
  absl::Status TakeMessage(const v1::CoordinatorMessage& message);
  absl::Status OpenChannel(const std::string& address);
  void Serve();
  step::StepResult Answer(std::span<const uint8_t> frame);

  const std::vector<uint32_t> can_hold_;
  const std::shared_ptr<WorkerLink> link_;
  ProcessWorkerClient client_;
  config::WorkerConfig config_;
  config::WorkerAssignment assignment_;
  step::StepLimits limits_;
  step::BlockTables tables_;                     // the thread's
  std::unique_ptr<transport::Channel> channel_;  // the worker's end
  transport::QueueChannel* queue_ = nullptr;     // the same, over the control stream
  std::thread thread_;
  size_t largest_frame_ = 0;
  size_t last_frame_ = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_TESTS_COORDINATOR_ENGINE_CHANNEL_WORKER_H_
