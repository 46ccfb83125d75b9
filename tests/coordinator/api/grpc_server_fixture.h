// The public gRPC server over a real connection, with an engine that the test plays.
#ifndef TANDEM_TESTS_COORDINATOR_API_GRPC_SERVER_FIXTURE_H_
#define TANDEM_TESTS_COORDINATOR_API_GRPC_SERVER_FIXTURE_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/api/grpc/grpc_server.h"
#include "proto/grpc/health/v1/health.grpc.pb.h"
#include "proto/tandem/v1/generation.grpc.pb.h"
#include "tests/coordinator/api/fake_engine.h"
#include "tests/coordinator/api/serving_model_for_test.h"

namespace tandem::coordinator {
namespace health = grpc::health::v1;

// No test waits so long unless it fails.
inline void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
}

inline v1::GenerateRequest Prompt(const std::string& id) {
  v1::GenerateRequest request;
  request.set_request_id(id);
  request.set_text("hi");
  return request;
}

// A Generate call as a client makes it.
class ClientCall {
 public:
  ClientCall(v1::Generation::Stub& stub, const v1::GenerateRequest& request) {
    SetDeadline(context_);
    reader_ = stub.Generate(&context_, request);
  }
  ~ClientCall() {
    context_.TryCancel();
    if (!finished_) Finish();
  }

  // The next message; empty at the end.
  std::optional<v1::GenerateResponse> Read() {
    v1::GenerateResponse response;
    if (!reader_->Read(&response)) return std::nullopt;
    return response;
  }
  // Reads to the end; the text and ids gather in one message.
  v1::GenerateResponse ReadAll() {
    v1::GenerateResponse all;
    while (auto response = Read()) {
      const std::string text = all.text() + response->text();
      all.MergeFrom(*response);
      all.set_text(text);
    }
    return all;
  }
  // REQUIRES: Finish has returned. Empty without such an entry.
  std::string Trailer(const std::string& key) const {
    const auto& trailers = context_.GetServerTrailingMetadata();
    const auto found = trailers.find(key);
    if (found == trailers.end()) return "";
    return {found->second.data(), found->second.size()};
  }
  grpc::Status Finish() {
    finished_ = true;
    while (Read()) {
    }
    return reader_->Finish();
  }
  void Cancel() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>> reader_;
  bool finished_ = false;
};

class GrpcServerTest : public testing::Test {
 protected:
  void SetUp() override { Start(ServingModelForTest()); }
  void Start(ServingModel model, Edge edge = {}, size_t max_requests = 1024) {
    Listen(std::move(edge));
    server_->Serve(std::move(model), engine_, max_requests);
  }
  // A server that loads its model.
  void Listen(Edge edge = {}) {
    server_ = nullptr;
    state_ = std::make_unique<ServerState>(2);
    auto socket = net::ListenSocket::Bind("--listen", "127.0.0.1:0");
    ASSERT_TRUE(socket.ok()) << socket.status();
    edge.refusals = &refusals_;
    auto server = GrpcServer::Start(*std::move(socket), 64, *state_, std::move(edge));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    stub_ = v1::Generation::NewStub(channel_);
  }

  // The stream of the newest request, which is the `count`th.
  std::shared_ptr<TokenStream> WaitForStream(size_t count = 1) {
    const std::vector<Request> requests = engine_.WaitForRequests(count);
    EXPECT_EQ(requests.size(), count);
    return requests.at(count - 1).stream;
  }

  health::HealthCheckResponse::ServingStatus Health(const std::string& service) {
    grpc::ClientContext context;
    SetDeadline(context);
    health::HealthCheckRequest request;
    request.set_service(service);
    health::HealthCheckResponse response;
    const grpc::Status status =
        health::Health::NewStub(channel_)->Check(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.status();
  }

  FakeEngine engine_;
  RefusalCounts refusals_;
  std::unique_ptr<ServerState> state_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Generation::Stub> stub_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_TESTS_COORDINATOR_API_GRPC_SERVER_FIXTURE_H_
