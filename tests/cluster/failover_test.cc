// Workers of a real server are killed and stopped while it serves: no request fails, and every
// answer is that of an undisturbed run.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "proto/grpc/health/v1/health.grpc.pb.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/server.h"

namespace tandem::testing {
namespace {

constexpr auto kPatience = std::chrono::minutes(2);
constexpr int kStreams = 6;

// Half of them sampled, all with log-probabilities, every third with penalties that depend on all
// of its tokens.
std::vector<std::string> Request(int i) {
  std::vector<std::string> flags = {"--prompt-token-ids",
                                    "1,2," + std::to_string(3 + i),
                                    "--max-tokens",
                                    std::to_string(600 + 40 * i),
                                    "--temperature",
                                    i % 2 == 0 ? "0" : "0.8",
                                    "--seed",
                                    std::to_string(i),
                                    "--logprobs",
                                    "2",
                                    "--ignore-eos"};
  if (i % 3 == 1) {
    for (const char* flag :
         {"--repetition-penalty", "1.2", "--frequency-penalty", "0.1", "--presence-penalty", "0.2",
          "--dry-multiplier", "0.8", "--dry-sequence-breaker", "none", "--logit-bias", "9=2",
          "--typical-p", "0.95", "--xtc-probability", "0.5", "--xtc-threshold", "0.01"}) {
      flags.emplace_back(flag);
    }
  }
  return flags;
}

class FailoverTest : public ::testing::TestWithParam<std::string> {
 protected:
  void StartServer(const std::vector<std::string>& more = {}) {
    std::vector<std::string> flags = {
        "--tensor-parallel-size", "2", "--threads-per-worker", "1", "--step-transport", GetParam(),
        // Slow enough for the streams to be there when a worker ends.
        "--cpu-kernels", "reference", "--step-timeout", "5", "--max-restarts", "50"};
    flags.insert(flags.end(), more.begin(), more.end());
    server_ = TestServer::Start(GoldenPath("arch/llama/model.gguf"), flags);
    ASSERT_NE(server_, nullptr);
  }
  std::vector<std::unique_ptr<Program>> StartStreams() const {
    std::vector<std::unique_ptr<Program>> streams;
    for (int i = 0; i < kStreams; ++i) {
      std::vector<std::string> flags = Request(i);
      flags.push_back("--json");
      streams.push_back(server_->StartGenerate(flags));
    }
    return streams;
  }
  static std::vector<std::string> Answers(std::vector<std::unique_ptr<Program>> streams) {
    std::vector<std::string> answers;
    for (auto& stream : streams) {
      EXPECT_EQ(stream->WaitExit(Deadline::After(kPatience)), 0) << stream->Stderr();
      answers.push_back(stream->Stdout());
    }
    return answers;
  }
  // Waits for the worker to be replaced; both of them run then.
  void AwaitRestarts(int64_t count) {
    ASSERT_TRUE(
        server_->WaitStatAtLeast("tandem_restarts_total", count, Deadline::After(kPatience)))
        << server_->program().Stderr();
    ASSERT_EQ(server_->workers().size(), 2u);
  }

  std::unique_ptr<TestServer> server_;
};

TEST_P(FailoverTest, StreamsContinueWhenWorkersAreKilledAndStopped) {
  ASSERT_NO_FATAL_FAILURE(StartServer({"--no-overlap"}));
  const std::vector<std::string> undisturbed = Answers(StartStreams());
  ASSERT_NO_FATAL_FAILURE(StartServer());  // two steps in flight
  const int64_t steps = server_->Stat("tandem_steps_total");
  auto streams = StartStreams();
  // Those that come later wait in the queue.
  ASSERT_TRUE(
      server_->WaitStatAtLeast("tandem_steps_total", steps + 1, Deadline::After(kPatience)));
  int64_t losses = 0;
  for (const int signal : {SIGKILL, SIGSTOP, SIGKILL}) {
    kill(server_->workers()[losses % 2], signal);
    ASSERT_NO_FATAL_FAILURE(AwaitRestarts(++losses));
  }
  EXPECT_EQ(Answers(std::move(streams)), undisturbed);
  const auto stats = server_->Stats();
  EXPECT_EQ(stats["tandem_kv_blocks_free"], stats["tandem_kv_blocks"]);
  EXPECT_GE(stats["tandem_epoch"], 1 + losses);
}

// A step past its deadline: no progress is no readiness, though the process is alive and well.
TEST_P(FailoverTest, ReadinessIsOffUntilAStuckWorkerIsReplaced) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  namespace health = grpc::health::v1;
  const auto stub = health::Health::NewStub(
      grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  health::HealthCheckRequest request;
  request.set_service("readiness");
  const auto watch = stub->Watch(&context, request);
  health::HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::SERVING);
  auto streams = StartStreams();
  ASSERT_TRUE(server_->WaitStatAtLeast("tandem_steps_total", 1, Deadline::After(kPatience)));
  kill(server_->workers()[1], SIGSTOP);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::NOT_SERVING);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::SERVING);
  Answers(std::move(streams));
}

TEST_P(FailoverTest, AnIdleWorkerThatIsStoppedIsNoticed) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  kill(server_->workers()[1], SIGSTOP);
  ASSERT_NO_FATAL_FAILURE(AwaitRestarts(1));
  EXPECT_NE(server_->program().Stderr().find("no sign of life"), std::string::npos);
  EXPECT_EQ(server_->Generate(Request(1)).exit_code, 0);
}

TEST_P(FailoverTest, BothWorkersAtOnceAndWhileIdle) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const Finished before = server_->Generate(Request(1));
  for (const pid_t worker : server_->workers()) kill(worker, SIGKILL);
  ASSERT_TRUE(server_->WaitStatAtLeast("tandem_restarts_total", 1, Deadline::After(kPatience)));
  const Finished after = server_->Generate(Request(1));
  EXPECT_EQ(after.exit_code, 0) << after.err;
  EXPECT_EQ(after.out, before.out);
}

INSTANTIATE_TEST_SUITE_P(Transports, FailoverTest, ::testing::Values("shm", "grpc"),
                         [](const auto& transport) { return transport.param; });

}  // namespace
}  // namespace tandem::testing
