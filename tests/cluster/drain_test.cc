// A real server is told to stop while it has much to do, and one of several is restarted.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "proto/tandem/v1/generation.grpc.pb.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/server.h"

namespace tandem::testing {
namespace {

constexpr auto kPatience = std::chrono::minutes(2);

std::unique_ptr<TestServer> StartServer(const std::string& address) {
  return TestServer::Start(GoldenPath("arch/llama/model.gguf"),
                           {"--listen", address, "--drain-timeout", "120", "--cpu-kernels",
                            // So slow that streams run when a signal comes.
                            "reference", "--threads-per-worker", "1"});
}

// The number of tokens, or the error.
absl::StatusOr<int> Generate(v1::Generation::Stub& stub, int max_tokens) {
  v1::GenerateRequest request;
  for (const int id : {1, 2, 3}) request.mutable_token_ids()->add_ids(id);
  request.mutable_sampling()->set_max_tokens(max_tokens);
  request.mutable_sampling()->set_ignore_eos(true);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto reader = stub.Generate(&context, request);
  v1::GenerateResponse response;
  int tokens = 0;
  while (reader->Read(&response)) tokens += response.token_ids_size();
  const grpc::Status status = reader->Finish();
  if (status.ok()) return tokens;
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

TEST(DrainTest, TwoHundredStreamsFinishAfterSigterm) {
  constexpr int kStreams = 200, kTokens = 64;
  const auto server = StartServer("127.0.0.1:0");
  ASSERT_NE(server, nullptr);
  const auto stub = v1::Generation::NewStub(
      grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials()));
  std::vector<absl::StatusOr<int>> ends(kStreams, 0);
  std::vector<std::thread> clients;
  for (auto& end : ends) {
    clients.emplace_back([&] { end = Generate(*stub, kTokens); });
  }
  EXPECT_TRUE(
      server->WaitStatAtLeast("tandem_requests_total", kStreams, Deadline::After(kPatience)));
  server->program().Signal(SIGTERM);
  for (std::thread& client : clients) client.join();
  for (const auto& end : ends) EXPECT_EQ(end.value_or(0), kTokens) << end.status();
  EXPECT_EQ(server->program().WaitExit(Deadline::After(kPatience)), 0);
  const std::string log = server->program().Stderr();
  EXPECT_NE(log.find("SIGTERM: shutting down; "), std::string::npos) << log;
  // Which of them run, and which wait, differs from step to step.
  EXPECT_EQ(log.find("SIGTERM: shutting down; 0 running and 0 waiting"), std::string::npos)
      << "they were in flight: " << log;
}

// Clients that balance over both, as docs/operations.md says.
class BalancedClients {
 public:
  BalancedClients(const std::string& a, const std::string& b) {
    grpc::ChannelArguments arguments;
    arguments.SetServiceConfigJSON(
        R"({"loadBalancingConfig": [{"round_robin": {}}],
            "healthCheckConfig": {"serviceName": "readiness"},
            "methodConfig": [{"name": [{"service": "tandem.v1.Generation"}],
              "waitForReady": true,
              "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "1s",
                              "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]})");
    channel_ = grpc::CreateCustomChannel(absl::StrCat("ipv4:", a, ",", b),
                                         grpc::InsecureChannelCredentials(), arguments);
    stub_ = v1::Generation::NewStub(channel_);
    for (int i = 0; i < 8; ++i) threads_.emplace_back([this] { Run(); });
  }
  ~BalancedClients() { Stop(); }
  // How many requests were answered in full.
  int Stop() {
    stopped_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return answered_;
  }

 private:
  void Run() {
    while (!stopped_) {
      const absl::StatusOr<int> tokens = Generate(*stub_, 40);
      EXPECT_EQ(tokens.value_or(0), 40) << tokens.status();
      ++answered_;
    }
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Generation::Stub> stub_;
  std::atomic<bool> stopped_ = false;
  std::atomic<int> answered_ = 0;
  std::vector<std::thread> threads_;
};

TEST(DrainTest, ARollingRestartOfTwoServersLosesNothing) {
  std::unique_ptr<TestServer> servers[] = {StartServer("127.0.0.1:0"), StartServer("127.0.0.1:0")};
  ASSERT_NE(servers[0], nullptr);
  ASSERT_NE(servers[1], nullptr);
  BalancedClients clients(servers[0]->address(), servers[1]->address());
  for (auto& server : servers) {
    const auto served = [&] {
      return server->WaitStatAtLeast("tandem_requests_total", 20, Deadline::After(kPatience));
    };
    EXPECT_TRUE(served());
    const std::string address = server->address();
    server->program().Signal(SIGTERM);
    EXPECT_EQ(server->program().WaitExit(Deadline::After(kPatience)), 0);
    server = StartServer(address);
    ASSERT_NE(server, nullptr);
    EXPECT_TRUE(served()) << "clients come back to it";
  }
  EXPECT_GE(clients.Stop(), 80);
}

}  // namespace
}  // namespace tandem::testing
