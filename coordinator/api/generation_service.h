// The public gRPC server: tandem.v1.Generation, reflection, and grpc.health.v1.
#ifndef TANDEM_COORDINATOR_API_GENERATION_SERVICE_H_
#define TANDEM_COORDINATOR_API_GENERATION_SERVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "coordinator/api/serving_model.h"
#include "coordinator/engine/engine.h"

namespace tandem::coordinator {

// Thread-safe.
class ApiServer {
 public:
  virtual ~ApiServer() = default;

  // Listens on `address` (HOST:0 takes a free port) and says SERVING. `engine` must outlive the
  // server. UNAVAILABLE when the address can't be bound.
  static absl::StatusOr<std::unique_ptr<ApiServer>> Start(const std::string& address,
                                                          ServingModel model, EngineHandle& engine);

  // HOST:PORT that was bound.
  virtual const std::string& address() const = 0;
  // Health says NOT_SERVING from here on.
  virtual void StopServing() = 0;
  // Ends every call by the deadline; then no call runs.
  virtual void Shutdown(Deadline deadline) = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GENERATION_SERVICE_H_
