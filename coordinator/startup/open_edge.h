// OpenEdge: certificates and tokens of the ports that clients use, read before anything is started,
// and how the server's own gateway gets in.
#ifndef TANDEM_COORDINATOR_STARTUP_OPEN_EDGE_H_
#define TANDEM_COORDINATOR_STARTUP_OPEN_EDGE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/server_config.h"
#include "coordinator/api/grpc/grpc_server.h"
#include "coordinator/process/secret_file.h"

namespace tandem::coordinator {

struct OpenedEdge {
  Edge edge{};
  // Of the gateway of --http-listen, where calls need a token or TLS; it must outlive the gateway.
  std::unique_ptr<SecretFile> gateway_token{};
  std::string gateway_address{};  // of the port that is the gateway's alone; empty: there is none
};

// INVALID_ARGUMENT with flag, path and what is wrong.
absl::StatusOr<OpenedEdge> OpenEdge(const config::ServerConfig& config);

// The flags of tandem_gateway for --http-listen, in front of the server on `address`.
std::vector<std::string> GatewayFlags(const config::ServerConfig& config, const OpenedEdge& opened,
                                      const std::string& address);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_STARTUP_OPEN_EDGE_H_
