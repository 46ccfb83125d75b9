// WorkerRegistry: which worker has which rank, and what workers' messages mean, without gRPC. A
// port (WorkerService) feeds it: Admit a Hello, Handle every later message, Release at the end.
//
// Thread-safe.
#ifndef TANDEM_COORDINATOR_CLUSTER_WORKER_REGISTRY_H_
#define TANDEM_COORDINATOR_CLUSTER_WORKER_REGISTRY_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "coordinator/cluster/rendezvous_registry.h"
#include "coordinator/cluster/worker_link.h"

namespace tandem::coordinator {

class WorkerRegistry {
 public:
  // `one_host`: workers share memory, so all must run on one host.
  WorkerRegistry(int size, bool one_host)
      : one_host_(one_host), links_(static_cast<size_t>(size)) {}

  RendezvousRegistry& rendezvous() { return rendezvous_; }

  // Waits until a worker is connected for every rank: false after `poll`, so that the caller may
  // check its processes.
  bool WaitAll(Deadline poll);
  // The ranks without a connected worker.
  std::vector<int> Missing() const;
  // One per rank; null if no worker is connected.
  std::vector<std::shared_ptr<WorkerLink>> links() const;
  // Waits until `link` no longer holds its rank, which is then free or held by another worker.
  // False at the deadline.
  bool WaitReleased(const WorkerLink& link, Deadline deadline);

  // --- from the port ---
  // Assigns the worker its rank, or returns the reason for rejecting it.
  absl::Status Admit(const std::shared_ptr<WorkerLink>& link);
  // Takes a message of an admitted worker, any but Hello.
  void Handle(const std::shared_ptr<WorkerLink>& link, v1::WorkerMessage message);
  // The worker's stream has ended: its rank is free again.
  void Release(const std::shared_ptr<WorkerLink>& link);

 private:
  // Checks a Hello.
  absl::Status Check(const v1::Hello& hello) const TANDEM_REQUIRES(mutex_);

  const bool one_host_;
  RendezvousRegistry rendezvous_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::shared_ptr<WorkerLink>> links_ TANDEM_GUARDED_BY(mutex_);  // as links()
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_WORKER_REGISTRY_H_
