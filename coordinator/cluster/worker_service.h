// WorkerService: the gRPC server that workers dial. Admits those that say the right Hello; nothing
// else is public here.
#ifndef TANDEM_COORDINATOR_CLUSTER_WORKER_SERVICE_H_
#define TANDEM_COORDINATOR_CLUSTER_WORKER_SERVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "coordinator/cluster/rendezvous_registry.h"
#include "coordinator/cluster/worker_link.h"

namespace grpc {
class Server;
}

namespace tandem::coordinator {

// Thread-safe.
class WorkerService {
 public:
  struct Options {
    std::string listen = "127.0.0.1:0";  // loopback only, until TLS exists
    std::string token;                   // what every Hello must carry
    int size = 1;
    bool one_host = true;  // workers share memory, so that all must be of the first one's host
  };

  // INVALID_ARGUMENT for an address that is not loopback, UNAVAILABLE when it can't be bound.
  static absl::StatusOr<std::unique_ptr<WorkerService>> Start(const Options& options);
  ~WorkerService();

  // HOST:PORT with the port that was bound.
  const std::string& address() const { return address_; }
  RendezvousRegistry& rendezvous() { return rendezvous_; }

  // Waits until every rank has said Hello, a poll at least every `poll` so that the caller may look
  // after its processes: returns true when all are there, false when `poll` passed.
  bool WaitAll(Deadline poll);
  // The ranks that have not said Hello yet.
  std::vector<int> Missing() const;
  // One link per rank. REQUIRES: WaitAll returned true.
  std::vector<std::shared_ptr<WorkerLink>> links() const;

 private:
  class Impl;  // the gRPC service

  explicit WorkerService(Options options);
  // Takes a place for the worker, or says why not. On success *rank is set.
  absl::Status Admit(const v1::Hello& hello, int* rank);
  void Register(int rank, std::shared_ptr<WorkerLink> link);

  const Options options_;
  std::string address_;
  RendezvousRegistry rendezvous_;
  mutable Mutex mutex_;
  CondVar changed_;
  // Null until connected.
  std::vector<std::shared_ptr<WorkerLink>> links_ TANDEM_GUARDED_BY(mutex_);
  std::vector<bool> taken_ TANDEM_GUARDED_BY(mutex_);
  std::string host_id_ TANDEM_GUARDED_BY(mutex_);  // of the first worker
  std::unique_ptr<Impl> impl_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_WORKER_SERVICE_H_
