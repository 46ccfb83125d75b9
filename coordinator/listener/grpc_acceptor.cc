#include "coordinator/listener/grpc_acceptor.h"

#include <grpcpp/grpcpp.h>

#include <utility>

namespace tandem::coordinator {
namespace {

constexpr int kHandshakeMillis = 20'000;    // of TLS, and until the client's SETTINGS
constexpr int kMaxStreams = 4096;           // calls at a time on one connection
constexpr int kMaxHeadersBytes = 16 << 10;  // of a call
// Clients may ping this many times as often as the server, also without calls.
constexpr int kClientPings = 3;

using grpc::experimental::ExternalConnectionAcceptor;

std::unique_ptr<ExternalConnectionAcceptor> AddTo(
    grpc::ServerBuilder& builder, const Keepalive& keepalive,
    const std::shared_ptr<grpc::ServerCredentials>& credentials, int idle_millis) {
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive.interval_millis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keepalive.answer_millis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             keepalive.interval_millis / kClientPings);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, idle_millis);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxHeadersBytes);
  // gRPC inflates a message whole before it looks at its size, and counts it nowhere.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  return builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
}

}  // namespace

GrpcAcceptor::GrpcAcceptor(grpc::ServerBuilder& builder, std::string name,
                           const Keepalive& keepalive,
                           std::shared_ptr<grpc::ServerCredentials> credentials, int idle_millis)
    : name_(std::move(name)),
      credentials_(std::move(credentials)),
      connections_(AddTo(builder, keepalive, credentials_, idle_millis)) {}

void GrpcAcceptor::Start(net::ListenSocket socket, size_t most_connections) {
  acceptor_.emplace(name_, std::move(socket), most_connections, [this](int fd) {
    ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = fd;
    connections_->HandleNewConnection(&connection);
  });
}

}  // namespace tandem::coordinator
