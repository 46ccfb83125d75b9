// The public gRPC server: tandem.v1.Generation, vllm.grpc.engine.VllmEngine, grpc.reflection (v1
// and v1alpha), and grpc.health.v1. It listens before there is a model: the calls that need it end
// with UNAVAILABLE until Serve. Health follows the server's state.
#ifndef TANDEM_COORDINATOR_API_GRPC_GRPC_SERVER_H_
#define TANDEM_COORDINATOR_API_GRPC_GRPC_SERVER_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/net/listen_socket.h"
#include "common/tls/tls_identity.h"
#include "coordinator/api/auth/gate.h"
#include "coordinator/api/serving_model.h"
#include "coordinator/engine/engine.h"
#include "coordinator/observe/refusal_counts.h"
#include "coordinator/observe/server_state.h"
#include "coordinator/observe/trace_recorder.h"

namespace tandem::coordinator {

// What stands between strangers and the services.
struct Edge {
  std::shared_ptr<TlsIdentity> tls{};  // null: plain text
  std::shared_ptr<Gate> gate{};        // null: no call needs a token
  // A second port, in plain text, on which callers must show that they are this server's gateway.
  std::optional<net::ListenSocket> gateway_socket{};
  // Counts the calls that are refused, and must outlive the server; null: nothing shows them.
  RefusalCounts* refusals = nullptr;
};

// One thread at a time.
class GrpcServer {
 public:
  // Accepts up to `max_connections` on `socket`. `state` must outlive the server.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(net::ListenSocket socket,
                                                           size_t max_connections,
                                                           ServerState& state, Edge edge = {});
  ~GrpcServer();  // Shutdown at once

  // HOST:PORT that is bound.
  const std::string& address() const;
  // Answers calls from here on, and sets the state to started. `engine` must outlive the server.
  // The tokenizer's queue holds `max_requests` texts; `recorder`, which must outlive the server
  // too, records for Tracing, which a server without one refuses. Once.
  void Serve(ServingModel model, EngineHandle& engine, size_t max_requests,
             TraceRecorder* recorder = nullptr);
  // Closes the port, ends every call by the deadline, except one whose text is being tokenized;
  // then no call runs.
  void Shutdown(Deadline deadline);

 private:
  struct Impl;  // gRPC's headers add seconds to the compilation of each includer
  explicit GrpcServer(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_GRPC_SERVER_H_
