// RingWorker: a worker that is a thread behind a real shared-memory ring. It parses, validates and
// applies every step as a worker process does, computes nothing, and answers each sampled row with
// token 1. For what a step costs the coordinator, and how large its frames are.
#ifndef TANDEM_TESTS_COORDINATOR_ENGINE_RING_WORKER_H_
#define TANDEM_TESTS_COORDINATOR_ENGINE_RING_WORKER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/step/block_tables.h"
#include "common/transport/shm_channel.h"
#include "coordinator/cluster/worker_client.h"

namespace tandem::coordinator {

class RingWorker : public WorkerClient {
 public:
  RingWorker(int rank, uint32_t vocab_size, std::vector<uint32_t> windows,
             std::vector<uint32_t> num_blocks);
  ~RingWorker() override;

  int rank() const override { return rank_; }
  absl::Status Configure(const config::WorkerConfig& config,
                         const config::WorkerAssignment& assignment) override;
  absl::Status StartLoad() override { return absl::OkStatus(); }
  absl::Status AwaitLoading(Deadline) override { return absl::OkStatus(); }
  absl::StatusOr<WorkerReady> FinishLoad(Deadline deadline) override;
  absl::Status Start(const std::vector<uint32_t>& num_blocks) override;
  absl::Status FinishStart(Deadline) override { return absl::OkStatus(); }
  absl::Status Submit(std::span<const uint8_t> frame, Deadline deadline) override;
  absl::StatusOr<step::StepResult> Collect(Deadline deadline) override;
  absl::Status Health() const override { return absl::OkStatus(); }
  void Abort(const absl::Status& reason) override;

  // Bytes of the largest and of the last step that was submitted.
  size_t largest_frame() const { return largest_frame_; }
  size_t last_frame() const { return last_frame_; }

 private:
  void Serve();
  step::StepResult Answer(std::span<const uint8_t> frame);

  const int rank_;
  const std::vector<uint32_t> can_hold_;
  config::WorkerConfig config_;
  config::WorkerAssignment assignment_;
  step::StepLimits limits_;
  step::BlockTables tables_;                      // the thread's
  std::unique_ptr<transport::ShmChannel> here_;   // the coordinator's end
  std::unique_ptr<transport::ShmChannel> there_;  // the worker's
  std::thread thread_;
  size_t largest_frame_ = 0;
  size_t last_frame_ = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_TESTS_COORDINATOR_ENGINE_RING_WORKER_H_
