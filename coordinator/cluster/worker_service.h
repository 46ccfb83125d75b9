// WorkerService: the gRPC server that workers connect to. Admits those with a valid Hello; it has
// no other public method.
#ifndef TANDEM_COORDINATOR_CLUSTER_WORKER_SERVICE_H_
#define TANDEM_COORDINATOR_CLUSTER_WORKER_SERVICE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "coordinator/cluster/rendezvous_registry.h"
#include "coordinator/cluster/worker_link.h"
#include "coordinator/listener/grpc_acceptor.h"

namespace grpc {
class Server;
}

namespace tandem::coordinator {

// Thread-safe.
class WorkerService {
 public:
  struct Options {
    std::string listen = "127.0.0.1:0";  // loopback only, until TLS exists
    std::string token;                   // required in the header of every stream
    int size = 1;
    bool one_host = true;  // workers share memory, so all must run on one host
  };

  // INVALID_ARGUMENT for an address that is not loopback, UNAVAILABLE when it can't be bound.
  static absl::StatusOr<std::unique_ptr<WorkerService>> Start(const Options& options);
  ~WorkerService();

  // HOST:PORT with the port that was bound.
  const std::string& address() const { return address_; }
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

 private:
  class Impl;  // the gRPC service

  explicit WorkerService(Options options);
  // Assigns the worker its rank, or returns the reason for rejecting it.
  absl::Status Admit(const std::shared_ptr<WorkerLink>& link);
  // Checks a Hello.
  absl::Status Check(const v1::Hello& hello) const TANDEM_REQUIRES(mutex_);
  // The worker's stream has ended: its rank is free again.
  void Release(const std::shared_ptr<WorkerLink>& link);

  const Options options_;
  std::string address_;
  RendezvousRegistry rendezvous_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::shared_ptr<WorkerLink>> links_ TANDEM_GUARDED_BY(mutex_);  // as links()
  std::unique_ptr<Impl> impl_;
  std::unique_ptr<grpc::Server> server_;
  std::optional<GrpcAcceptor> acceptor_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_WORKER_SERVICE_H_
