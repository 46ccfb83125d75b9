// WorkerService: the gRPC server that workers connect to. Passes their streams to a WorkerRegistry;
// it has no other public method. With TLS a worker's certificate says which rank it may be
// (WorkerIdentity).
#ifndef TANDEM_COORDINATOR_CLUSTER_WORKER_SERVICE_H_
#define TANDEM_COORDINATOR_CLUSTER_WORKER_SERVICE_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/tls/tls_identity.h"
#include "coordinator/cluster/worker_registry.h"
#include "coordinator/listener/grpc_acceptor.h"

namespace grpc {
class Server;
}

namespace tandem::coordinator {

// Thread-safe.
class WorkerService {
 public:
  struct Options {
    std::string listen = "127.0.0.1:0";
    std::string token;  // required in the header of every stream
    TlsFiles tls{};     // all three, needed beyond loopback; empty: plain text
    int size = 1;
    bool one_host = true;  // workers share memory, so all must run on one host
  };

  // INVALID_ARGUMENT for files of TLS that can't be used, or an address beyond loopback without
  // them; UNAVAILABLE when it can't be bound.
  static absl::StatusOr<std::unique_ptr<WorkerService>> Start(const Options& options);
  ~WorkerService();

  // HOST:PORT with the port that was bound.
  const std::string& address() const { return address_; }
  WorkerRegistry& registry() { return registry_; }

 private:
  class Impl;  // the gRPC service

  explicit WorkerService(Options options);

  const Options options_;
  std::string address_;
  std::shared_ptr<TlsIdentity> tls_;  // null: plain text
  WorkerRegistry registry_;
  std::unique_ptr<Impl> impl_;
  std::unique_ptr<grpc::Server> server_;
  std::optional<GrpcAcceptor> acceptor_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_CLUSTER_WORKER_SERVICE_H_
