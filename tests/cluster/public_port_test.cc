// The public port of a real server under hostile use: without descriptors, before the model is
// loaded, at the end.
#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "proto/grpc/health/v1/health.grpc.pb.h"
#include "proto/tandem/v1/generation.grpc.pb.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/server.h"

namespace tandem::testing {
namespace {

namespace health = grpc::health::v1;

constexpr auto kPatience = std::chrono::seconds(60);

std::string LlamaPath() { return GoldenPath("arch/llama/model.gguf"); }

// With at most `files` open files, soft and hard.
std::unique_ptr<Program> StartWithFiles(int files) {
  return Program::Start({"/bin/sh", "-c", absl::StrCat("ulimit -n ", files, "; exec \"$@\""), "sh",
                         kCoordinator, "--model", LlamaPath(), "--listen", "127.0.0.1:0",
                         "--worker-binary", kWorker});
}

// Waits for a line that begins with `begin`; returns its text up to a comma or a semicolon.
std::string Announced(const std::string& text, const std::string& begin) {
  const size_t at = text.find(begin);
  if (at == std::string::npos) return "";
  return text.substr(at + begin.size(),
                     text.find_first_of(",; \n", at + begin.size()) - at - begin.size());
}

int ConnectTo(const std::string& address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(ParseHostPort(address)->port));
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  return fd;
}

TEST(PublicPortTest, TakesConnectionsAgainAfterMoreThanItHasDescriptors) {
  constexpr int kFiles = 160;
  const auto server = StartWithFiles(kFiles);
  ASSERT_TRUE(server->WaitStdout("KV blocks", Deadline::After(kPatience))) << server->Stderr();
  const std::string address = Announced(server->Stdout(), "ready: listening on ");
  std::vector<int> idle;
  for (int i = 0; i < kFiles + 5; ++i) idle.push_back(ConnectTo(address));
  EXPECT_TRUE(server->WaitStderr("connections, as many as it takes", Deadline::After(kPatience)));
  for (const int fd : idle) close(fd);
  // The server closes its ends one by one, and refuses until the first is closed.
  const Deadline deadline = Deadline::After(kPatience);
  Finished answer;
  do {
    answer = RunProgram({kTandem, "generate", "--server", address, "--prompt-token-ids", "1,2",
                         "--max-tokens", "2"});
  } while (answer.exit_code != 0 && !deadline.Passed());
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  server->Signal(SIGTERM);
  EXPECT_EQ(server->WaitExit(Deadline::After(kPatience)), 0) << server->Stderr();
}

TEST(PublicPortTest, TooFewDescriptorsAreNamed) {
  const auto server = StartWithFiles(16);
  EXPECT_EQ(server->WaitExit(Deadline::After(kPatience)), 1);
  EXPECT_NE(server->Stderr().find("this process may open 16 files (ulimit -n)"), std::string::npos)
      << server->Stderr();
}

health::HealthCheckResponse::ServingStatus StatusOf(const std::shared_ptr<grpc::Channel>& channel,
                                                    const std::string& service) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  health::HealthCheckRequest request;
  request.set_service(service);
  health::HealthCheckResponse response;
  const grpc::Status checked =
      health::Health::NewStub(channel)->Check(&context, request, &response);
  EXPECT_TRUE(checked.ok()) << checked.error_message();
  return response.status();
}

// A server whose workers do not come.
class LoadingServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(token_file_) << "a token\n";
    server_ = Program::Start({kCoordinator, "--model", LlamaPath(), "--listen", "127.0.0.1:0",
                              "--workers", "external", "--worker-token-file", token_file_});
    ASSERT_TRUE(server_->WaitStderr("answers when it is ready", Deadline::After(kPatience)))
        << server_->Stderr();
    address_ = Announced(server_->Stderr(), "loading the model; ");
    channel_ = grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
  }

  const std::string token_file_ = ::testing::TempDir() + "/token";
  std::unique_ptr<Program> server_;
  std::string address_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(LoadingServerTest, AnswersThatItIsLoading) {
  grpc::ClientContext check_context, stats_context;
  check_context.set_deadline(std::chrono::system_clock::now() + kPatience);
  stats_context.set_deadline(std::chrono::system_clock::now() + kPatience);
  health::HealthCheckResponse response;
  const grpc::Status checked =
      health::Health::NewStub(channel_)->Check(&check_context, {}, &response);
  ASSERT_TRUE(checked.ok()) << checked.error_message();
  EXPECT_EQ(response.status(), health::HealthCheckResponse::NOT_SERVING);
  v1::GetStatsResponse stats;
  const grpc::Status refused =
      v1::Generation::NewStub(channel_)->GetStats(&stats_context, {}, &stats);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(refused.error_message(), "the server is loading its model: waiting for ranks 0/1");
}

TEST_F(LoadingServerTest, IsLiveAndNeitherStartedNorReady) {
  EXPECT_EQ(StatusOf(channel_, "startup"), health::HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(StatusOf(channel_, "liveness"), health::HealthCheckResponse::SERVING);
  EXPECT_EQ(StatusOf(channel_, "readiness"), health::HealthCheckResponse::NOT_SERVING);
}

TEST_F(LoadingServerTest, APortInUseIsSaidBeforeTheModelIsRead) {
  const Finished second =
      RunProgram({kCoordinator, "--model", "no-such-file", "--listen", address_});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.err.find(
                absl::StrCat("--listen: cannot listen on ", address_, ": Address already in use")),
            std::string::npos)
      << second.err;
}

TEST_F(LoadingServerTest, ASignalEndsIt) {
  server_->Signal(SIGHUP);
  EXPECT_EQ(server_->WaitExit(Deadline::After(kPatience)), 0) << server_->Stderr();
}

class StoppingServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_ = TestServer::Start(LlamaPath(),
                                // Kernels so slow that a stream runs when a signal comes.
                                {"--tensor-parallel-size", "2", "--cpu-kernels", "reference"});
    ASSERT_NE(server_, nullptr);
    workers_ = server_->workers();
  }

  std::unique_ptr<TestServer> server_;
  std::vector<pid_t> workers_;
};

// The client does not react to the end meanwhile: it reads only when the test does.
TEST_F(StoppingServerTest, AnOpenWatchCostsNothing) {
  auto stub = health::Health::NewStub(
      grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  auto watch = stub->Watch(&context, {});
  health::HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::SERVING);
  server_->program().Signal(SIGTERM);
  EXPECT_EQ(server_->program().WaitExit(Deadline::After(kPatience)), 0);
  EXPECT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::NOT_SERVING);
  // Ended by the server, not by the end of its patience.
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_message(), "the server is shutting down");
}

TEST_F(StoppingServerTest, HangupShutsDownAsSigtermDoes) {
  server_->program().Signal(SIGHUP);
  EXPECT_EQ(server_->program().WaitExit(Deadline::After(kPatience)), 0);
  EXPECT_NE(server_->program().Stderr().find("SIGHUP: shutting down"), std::string::npos);
  EXPECT_EQ(server_->program().Stderr().find("\nE "), std::string::npos)
      << "an orderly end is no error: " << server_->program().Stderr();
}

// A stopped worker keeps the first signal's shutdown waiting for its step.
TEST_F(StoppingServerTest, ASecondSignalEndsItAtOnce) {
  const auto stream = server_->StartGenerate({"--prompt-token-ids", "1,2,3", "--max-tokens", "2000",
                                              "--ignore-eos", "--temperature", "0"});
  ASSERT_TRUE(server_->WaitStatAtLeast("tandem_steps_total", 1, Deadline::After(kPatience)));
  kill(workers_[1], SIGSTOP);
  server_->program().Signal(SIGTERM);
  ASSERT_TRUE(server_->program().WaitStderr("SIGTERM: shutting down", Deadline::After(kPatience)));
  server_->program().Signal(SIGINT);
  EXPECT_EQ(server_->program().WaitExit(Deadline::After(kPatience)), 128 + SIGINT);
  EXPECT_TRUE(WaitGone(workers_, Deadline::After(kPatience)));
}

}  // namespace
}  // namespace tandem::testing
