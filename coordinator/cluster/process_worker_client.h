// ProcessWorkerClient: a WorkerClient for a worker process, spawned or external.
#ifndef TANDEM_COORDINATOR_CLUSTER_PROCESS_WORKER_CLIENT_H_
#define TANDEM_COORDINATOR_CLUSTER_PROCESS_WORKER_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/transport/channel.h"
#include "common/transport/queue_channel.h"
#include "coordinator/cluster/rank_progress.h"
#include "coordinator/cluster/worker_client.h"
#include "coordinator/cluster/worker_link.h"
#include "coordinator/process/child_process.h"

namespace tandem::coordinator {

class ProcessWorkerClient : public WorkerClient {
 public:
  // `process` is null for an external worker; `on_progress` may be null.
  ProcessWorkerClient(int rank, std::shared_ptr<WorkerLink> link,
                      std::shared_ptr<ChildProcess> process, RankProgressFn on_progress = nullptr);
  ~ProcessWorkerClient() override;

  int rank() const override { return rank_; }
  absl::Status Configure(const config::WorkerConfig& config,
                         const config::WorkerAssignment& assignment) override;
  absl::Status StartLoad() override;
  absl::Status AwaitLoading(Deadline answer, Deadline last,
                            const std::function<bool()>& cancelled) override;
  absl::StatusOr<WorkerReady> FinishLoad(Deadline deadline) override;
  absl::Status Start(const std::vector<uint32_t>& num_blocks) override;
  absl::Status FinishStart(Deadline deadline) override;
  absl::Status Submit(std::span<const uint8_t> frame, Deadline deadline) override;
  absl::StatusOr<step::StepResult> Collect(Deadline deadline) override;
  void Ping() override { link_->Ping().IgnoreError(); }  // then there is no answer
  bool WaitPong(Deadline deadline) override { return link_->WaitPong(deadline); }
  absl::Status Health() const override;
  bool EndedFromOutside() const override;
  void Kill() override;
  void Abort(const absl::Status& reason) override;

 private:
  // The step channel of the epoch. Shared with the link's callbacks and with Abort, which run on
  // other threads.
  class SharedChannel {
   public:
    void Set(std::shared_ptr<transport::Channel> channel) {
      MutexLock lock(mutex_);
      channel_ = std::move(channel);
    }
    std::shared_ptr<transport::Channel> Get() const {
      MutexLock lock(mutex_);
      return channel_;
    }
    void Close(const std::string& reason) {
      if (auto open = Get()) open->Close(reason);
    }

   private:
    mutable Mutex mutex_;
    std::shared_ptr<transport::Channel> channel_ TANDEM_GUARDED_BY(mutex_);  // null at first
  };

  // Makes the step channel of this epoch; returns its address for Configure.
  absl::StatusOr<std::string> OpenChannel(const config::WorkerConfig& config, Epoch epoch);
  // The link's next event. UNAVAILABLE if a process of ours is stopped meanwhile; it is killed.
  absl::StatusOr<v1::WorkerMessage> NextLinkEvent(Deadline deadline);
  // The next event of this epoch; Failed is an error.
  absl::StatusOr<v1::WorkerMessage> NextEvent(Deadline deadline);
  // The next one that is not Loading.
  absl::StatusOr<v1::WorkerMessage> NextAnswer(Deadline deadline);
  void Report(RankProgress::Stage stage, const v1::Loading& loading);
  // The error of a worker's Failed. One that is not ours gives its rank up then, unless it only
  // waited for others: it may have the wrong file, which another has not.
  absl::Status Failure(const v1::Failed& failed);
  // `status` prefixed with the rank and, if the process ended, with its exit.
  absl::Status Explain(const absl::Status& status) const;

  const int rank_;
  const std::shared_ptr<WorkerLink> link_;
  const std::shared_ptr<ChildProcess> process_;
  const RankProgressFn on_progress_;
  Epoch epoch_;
  const std::shared_ptr<SharedChannel> channel_;
  std::shared_ptr<transport::QueueChannel> results_;  // the same over grpc; null over shm
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_PROCESS_WORKER_CLIENT_H_
