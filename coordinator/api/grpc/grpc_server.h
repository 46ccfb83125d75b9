// The public gRPC server: tandem.v1.Generation, reflection, and grpc.health.v1.
#ifndef TANDEM_COORDINATOR_API_GRPC_GRPC_SERVER_H_
#define TANDEM_COORDINATOR_API_GRPC_GRPC_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "coordinator/api/serving_model.h"
#include "coordinator/engine/engine.h"

namespace tandem::coordinator {

// One thread at a time.
class GrpcServer {
 public:
  // Listens on `address` (HOST:0 takes a free port) and sets health to SERVING. `engine` must
  // outlive the server. UNAVAILABLE when the address can't be bound. The tokenizer's queue holds
  // `max_requests` texts.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const std::string& address,
                                                           ServingModel model, EngineHandle& engine,
                                                           size_t max_requests);
  ~GrpcServer();  // Shutdown at once

  // HOST:PORT that was bound.
  const std::string& address() const;
  // Sets health to NOT_SERVING.
  void StopServing();
  // Ends every call by the deadline, except one whose text is being tokenized; then no call runs.
  void Shutdown(Deadline deadline);

 private:
  struct Impl;  // gRPC's headers add seconds to the compilation of each includer
  explicit GrpcServer(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_GRPC_SERVER_H_
