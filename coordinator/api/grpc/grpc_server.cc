#include "coordinator/api/grpc/grpc_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <optional>
#include <utility>

#include "common/rpc/keepalive.h"
#include "common/rpc/library_log.h"
#include "common/rpc/server_credentials.h"
#include "coordinator/api/grpc/generation_service.h"
#include "coordinator/api/grpc/health_service.h"
#include "coordinator/api/grpc/open_calls.h"
#include "coordinator/api/grpc/reflection_service.h"
#include "coordinator/api/grpc/tracing_service.h"
#include "coordinator/api/vllm/vllm_service.h"
#include "coordinator/listener/grpc_acceptor.h"

namespace tandem::coordinator {
namespace {

// For clients to close their connections.
constexpr auto kCloseTime = std::chrono::milliseconds(200);
// It has one; more are of a predecessor whose end is not noticed yet, or of others, who are
// refused.
constexpr size_t kMaxGatewayConnections = 16;
// For what connections send, whose messages gRPC gathers before a service sees them: with more it
// narrows flow control, then ends calls. Health checks need no token, so anyone may begin many.
constexpr size_t kMaxTransportBytes = 512 << 20;
constexpr Keepalive kKeepalive{.interval_millis = 30'000, .answer_millis = 30'000};

absl::Status Counted(RefusalCounts& refusals, absl::Status checked) {
  refusals.Add(checked.code(), RefusalCounts::kUnauthenticated);
  return checked;
}

// Every call of the port passes it.
CallCheck CheckOf(Gate* gate, RefusalCounts& refusals) {
  if (gate == nullptr) return nullptr;
  return [gate, &refusals](const CallHead& head) {
    return Counted(refusals, gate->Check(head.method, head.Header(kAuthorization)));
  };
}

CallCheck CheckOfGateway(Gate& gate, RefusalCounts& refusals) {
  return [&gate, &refusals](const CallHead& head) {
    return Counted(refusals, gate.CheckFromGateway(head.method, head.Header(kAuthorization),
                                                   head.Header(kGatewayHeader)));
  };
}

}  // namespace

struct GrpcServer::Impl {
  Impl(ServerState& server_state, Edge of) : state(server_state), edge(std::move(of)) {}

  absl::Status Start(net::ListenSocket socket, size_t max_connections) {
    RouteLibraryLogs();
    grpc::EnableDefaultHealthCheckService(false);
    address = socket.address();
    grpc::ServerBuilder builder;
    builder.SetResourceQuota(grpc::ResourceQuota("--listen").Resize(kMaxTransportBytes));
    acceptor.emplace(builder, "--listen", kKeepalive,
                     MakeServerCredentials(edge.tls.get(), CheckOf(edge.gate.get(), refusals)));
    if (edge.gateway_socket.has_value()) {
      gateway_acceptor.emplace(
          builder, "the gateway's port", kKeepalive,
          MakeServerCredentials(nullptr, CheckOfGateway(*edge.gate, refusals)));
    }
    builder.RegisterService(&generation);
    builder.RegisterService(&tracing);
    builder.RegisterService(&vllm);
    builder.RegisterService(&health);
    reflection.AddTo(builder);
    server = builder.BuildAndStart();
    if (server == nullptr) return absl::InternalError("the gRPC server does not start");
    acceptor->Start(std::move(socket), max_connections);
    if (edge.gateway_socket.has_value()) {
      gateway_acceptor->Start(*std::move(edge.gateway_socket), kMaxGatewayConnections);
    }
    return absl::OkStatus();
  }

  void StopAccepting() {
    acceptor->Stop();
    if (gateway_acceptor.has_value()) gateway_acceptor->Stop();
  }

  ServerState& state;
  Edge edge;
  OpenCalls calls{};
  RefusalCounts not_shown{};
  RefusalCounts& refusals = edge.refusals == nullptr ? not_shown : *edge.refusals;
  Serving serving{calls, state, edge.gate.get(), refusals};
  GenerationService generation{serving};
  TracingService tracing{serving};
  VllmService vllm{serving};
  HealthService health{calls, state};
  ReflectionService reflection{calls};
  std::string address{};
  std::unique_ptr<grpc::Server> server{};
  std::optional<GrpcAcceptor> acceptor{};
  std::optional<GrpcAcceptor> gateway_acceptor{};
};

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(net::ListenSocket socket,
                                                              size_t max_connections,
                                                              ServerState& state, Edge edge) {
  auto impl = std::make_unique<Impl>(state, std::move(edge));
  absl::Status started = impl->Start(std::move(socket), max_connections);
  if (!started.ok()) return started;
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(impl)));
}

GrpcServer::GrpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

GrpcServer::~GrpcServer() { Shutdown(Deadline::After(Duration::zero())); }

const std::string& GrpcServer::address() const { return impl_->address; }

void GrpcServer::Serve(ServingModel model, EngineHandle& engine, size_t max_requests,
                       TraceRecorder* recorder) {
  impl_->serving.Begin(std::move(model), engine, max_requests, recorder);
  impl_->state.SetStarted();
}

void GrpcServer::Shutdown(Deadline deadline) {
  if (impl_->server == nullptr) return;
  impl_->StopAccepting();
  impl_->health.Close();
  impl_->tracing.Close();
  impl_->reflection.Close();
  impl_->calls.WaitNone(deadline);
  // Connections without calls; a client that does not react to GOAWAY keeps its own open.
  const Duration left = deadline.OrAfter(kCloseTime).Left();
  impl_->server->Shutdown(std::chrono::system_clock::now() + left);
  impl_->server->Wait();
  impl_->server = nullptr;
}

}  // namespace tandem::coordinator
