// Kills real processes; checks leftovers, the named rank, and the time.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/cluster/golden_cases.h"
#include "tests/cluster/server.h"

namespace tandem::testing {
namespace {

// Far below the time that a load or a lost connection may take; a loaded machine is slow.
constexpr auto kLossNoticed = std::chrono::seconds(40);
constexpr auto kStepTimeout = std::chrono::seconds(3);
constexpr auto kPatience = std::chrono::seconds(60);

// With kernels so slow that a stream runs when a signal comes.
const std::vector<std::string> kTwoRanks = {
    "--tensor-parallel-size", "2", "--threads-per-worker", "1", "--cpu-kernels", "reference"};
const std::vector<std::string> kNoRestart = {"--max-restarts", "0"};
const std::vector<std::string> kEndless = {
    "--prompt-token-ids", "1,2,3", "--max-tokens", "2000", "--ignore-eos", "--temperature", "0"};

std::set<std::string> SharedMemory() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (name.find("tandem") != std::string::npos) names.insert(name);
  }
  return names;
}

std::vector<std::string> Plus(std::vector<std::string> flags,
                              const std::vector<std::string>& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

std::string Errors(const std::vector<std::unique_ptr<Program>>& programs) {
  std::string all;
  for (const auto& program : programs) all += program->Stderr();
  return all;
}

class FailureTest : public ::testing::TestWithParam<std::string> {
 protected:
  void StartServer(const std::vector<std::string>& flags = {}) {
    shared_memory_ = SharedMemory();
    server_ = TestServer::Start(GoldenPath("arch/llama/model.gguf"),
                                Plus(Plus(kTwoRanks, {"--step-transport", GetParam()}), flags));
    ASSERT_NE(server_, nullptr);
    workers_ = server_->workers();
    ASSERT_EQ(workers_.size(), 2u);
  }
  // A request that is being computed.
  std::unique_ptr<Program> StartStream() {
    auto stream = server_->StartGenerate(kEndless);
    EXPECT_TRUE(server_->WaitStatAtLeast("tandem_steps_total", 1, Deadline::After(kPatience)));
    return stream;
  }
  void ExpectNothingLeft(Deadline deadline) {
    EXPECT_TRUE(WaitGone(workers_, deadline)) << "a worker is left";
    EXPECT_EQ(SharedMemory(), shared_memory_);
  }

  std::set<std::string> shared_memory_;
  std::unique_ptr<TestServer> server_;
  std::vector<pid_t> workers_;
};

TEST_P(FailureTest, SigtermEndsEverything) {
  StartServer();
  auto stream = StartStream();
  server_->program().Signal(SIGTERM);
  EXPECT_EQ(server_->program().WaitExit(Deadline::After(kPatience)), 0);
  EXPECT_TRUE(stream->WaitExit(Deadline::After(kPatience)).has_value());
  ExpectNothingLeft(Deadline::After(kLossNoticed));
}

TEST_P(FailureTest, WorkersFollowAKilledCoordinator) {
  StartServer();
  auto stream = StartStream();
  server_->program().Signal(SIGKILL);
  ExpectNothingLeft(Deadline::After(kLossNoticed));
}

TEST_P(FailureTest, AKilledWorkerIsNamedWhileStepsRun) {
  StartServer(kNoRestart);
  auto stream = StartStream();
  kill(workers_[1], SIGKILL);
  EXPECT_EQ(server_->program().WaitExit(Deadline::After(kLossNoticed)), 1);
  EXPECT_NE(server_->program().Stderr().find("tandem_coordinator: rank 1"), std::string::npos)
      << server_->program().Stderr();
  EXPECT_EQ(stream->WaitExit(Deadline::After(kPatience)), 1);
  EXPECT_NE(stream->Stderr().find("rank 1"), std::string::npos) << stream->Stderr();
  ExpectNothingLeft(Deadline::After(kLossNoticed));
}

TEST_P(FailureTest, AKilledWorkerIsNamedWhileIdle) {
  StartServer(kNoRestart);
  kill(workers_[0], SIGKILL);
  EXPECT_EQ(server_->program().WaitExit(Deadline::After(kLossNoticed)), 1);
  EXPECT_NE(server_->program().Stderr().find("tandem_coordinator: rank 0"), std::string::npos)
      << server_->program().Stderr();
  ExpectNothingLeft(Deadline::After(kLossNoticed));
}

TEST_P(FailureTest, AStoppedWorkerIsNamedAtTheStepDeadline) {
  StartServer(Plus(kNoRestart, {"--step-timeout", std::to_string(kStepTimeout.count())}));
  auto stream = StartStream();
  kill(workers_[1], SIGSTOP);
  EXPECT_EQ(server_->program().WaitExit(Deadline::After(kStepTimeout + kLossNoticed)), 1);
  EXPECT_NE(server_->program().Stderr().find("rank 1"), std::string::npos)
      << server_->program().Stderr();
  ExpectNothingLeft(Deadline::After(kLossNoticed));
}

TEST_P(FailureTest, BlocksComeBackFromAHundredKilledClients) {
  StartServer();
  const auto before = server_->Stats();
  ASSERT_TRUE(before.is_object());
  for (int batch = 0; batch < 10; ++batch) {
    std::vector<std::unique_ptr<Program>> clients;
    for (int i = 0; i < 10; ++i) clients.push_back(server_->StartGenerate(kEndless));
    ASSERT_TRUE(server_->WaitStatAtLeast("tandem_requests_total", 10 * (batch + 1),
                                         Deadline::After(kPatience)))
        << "batch " << batch << ": " << server_->Stats() << Errors(clients);
    for (auto& client : clients) client->Signal(SIGKILL);
    for (auto& client : clients) client->WaitExit(Deadline::After(kPatience));
    ASSERT_TRUE(server_->WaitStat("tandem_num_requests_running", 0, Deadline::After(kPatience)));
  }
  const auto after = server_->Stats();
  EXPECT_EQ(after["tandem_kv_blocks_free"], before["tandem_kv_blocks_free"]);
  EXPECT_EQ(after["tandem_kv_blocks_free"], after["tandem_kv_blocks"]);
}

INSTANTIATE_TEST_SUITE_P(Transports, FailureTest, ::testing::Values("shm", "grpc"),
                         [](const auto& transport) { return transport.param; });

}  // namespace
}  // namespace tandem::testing
