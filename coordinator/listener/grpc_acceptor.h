// GrpcAcceptor: a gRPC server's port over an Acceptor, in place of gRPC's listener, which accepts
// no more once accept(2) has failed.
#ifndef TANDEM_COORDINATOR_LISTENER_GRPC_ACCEPTOR_H_
#define TANDEM_COORDINATOR_LISTENER_GRPC_ACCEPTOR_H_

#include <memory>
#include <optional>
#include <string>

#include "common/net/listen_socket.h"
#include "common/rpc/keepalive.h"
#include "coordinator/listener/acceptor.h"

namespace grpc {
class ServerBuilder;
class ServerCredentials;
namespace experimental {
class ExternalConnectionAcceptor;
}
}  // namespace grpc

namespace tandem::coordinator {

// How long a connection may be without calls, by default.
inline constexpr int kIdleMillis = 5 * 60'000;

// One thread at a time.
class GrpcAcceptor {
 public:
  // Adds the port to a server in the making, with deadlines for what is idle: a connection that
  // does not begin HTTP/2, one that does not answer pings, one without calls for `idle_millis`.
  // `name` is of the port, for the log. `credentials` (common/rpc/server_credentials.h) are of this
  // port alone.
  GrpcAcceptor(grpc::ServerBuilder& builder, std::string name, const Keepalive& keepalive,
               std::shared_ptr<grpc::ServerCredentials> credentials, int idle_millis = kIdleMillis);

  // Accepts from here on. REQUIRES: the server is built.
  void Start(net::ListenSocket socket, size_t most_connections);
  // Closes the port. Before the server's Shutdown.
  void Stop() { acceptor_.reset(); }

 private:
  const std::string name_;
  const std::shared_ptr<grpc::ServerCredentials> credentials_;
  const std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::optional<Acceptor> acceptor_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_LISTENER_GRPC_ACCEPTOR_H_
