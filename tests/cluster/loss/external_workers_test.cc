// External workers that are lost, that have the wrong file, or whose coordinator fails.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/server.h"

namespace tandem::testing {
namespace {

constexpr char kModel[] = "models/demo.gguf";

Deadline Long() { return Deadline::After(std::chrono::minutes(2)); }

class ExternalWorkersTest : public ::testing::Test {
 protected:
  void SetUp() override { std::ofstream(token_file_) << "a token\n"; }

  // Of two ranks; its port is open when this returns.
  void StartCoordinator() {
    coordinator_ = Program::Start(
        {kCoordinator, "--model", kModel, "--listen", "127.0.0.1:0", "--tensor-parallel-size", "2",
         "--max-num-seqs", "4", "--max-model-len", "128", "--num-kv-blocks", "64", "--workers",
         "external", "--worker-token-file", token_file_, "--max-restarts", "1"});
    const std::string before = "waiting for workers on ";
    ASSERT_TRUE(coordinator_->WaitStderr(before, Long()));
    ASSERT_TRUE(coordinator_->WaitStderr("\n", Long()));
    const std::string log = coordinator_->Stderr();
    const size_t at = log.find(before) + before.size();
    worker_address_ = log.substr(at, log.find('\n', at) - at);
  }
  std::unique_ptr<Program> StartWorker(int rank, const std::string& model = kModel) const {
    return Program::Start({kWorker, "--coordinator", worker_address_, "--token-file", token_file_,
                           "--rank", std::to_string(rank), "--model", model});
  }
  void AwaitReady() { ASSERT_TRUE(coordinator_->WaitStdout("ready:", Long())); }
  // Another file with the same header and size.
  std::string OtherWeights() const {
    const std::string path = ::testing::TempDir() + "/other.gguf";
    std::ifstream in(kModel, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    for (size_t i = bytes.size() / 2; i < bytes.size(); ++i)
      bytes[i] = static_cast<char>(~bytes[i]);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  const std::string token_file_ = ::testing::TempDir() + "/token";
  std::string worker_address_;
  std::unique_ptr<Program> coordinator_;
};

TEST_F(ExternalWorkersTest, OneThatIsLostWhileTheServerStartsIsWaitedForAgain) {
  StartCoordinator();
  auto lost = StartWorker(0);
  ASSERT_TRUE(coordinator_->WaitStderr("rank 0 connected", Long()));
  const auto other = StartWorker(1);
  // It stands still: the coordinator waits for it, whether it has taken Load yet or not.
  lost->Signal(SIGSTOP);
  ASSERT_TRUE(coordinator_->WaitStderr("rank 1 connected", Long()));
  lost->Signal(SIGKILL);
  ASSERT_TRUE(coordinator_->WaitStderr("rank 0 disconnected", Long()));
  const auto again = StartWorker(0);
  AwaitReady();
}

TEST_F(ExternalWorkersTest, OneWithOtherWeightsGivesItsRankUp) {
  StartCoordinator();
  auto first = StartWorker(0);
  const auto second = StartWorker(1);
  AwaitReady();
  first->Signal(SIGKILL);
  ASSERT_TRUE(coordinator_->WaitStderr("rank 0 disconnected", Long()));
  for (int i = 0; i < 3; ++i) {  // more than restarts are allowed
    const auto wrong = StartWorker(0, OtherWeights());
    EXPECT_EQ(wrong->WaitExit(Long()), 1);
    EXPECT_NE(wrong->Stderr().find("fingerprint"), std::string::npos) << wrong->Stderr();
  }
  const auto right = StartWorker(0);
  ASSERT_TRUE(coordinator_->WaitStderr("serving again", Long()));
}

// A worker whose connection was cut comes back before the coordinator knows.
TEST_F(ExternalWorkersTest, ARankThatIsTakenIsAskedForAgain) {
  StartCoordinator();
  const auto first = StartWorker(0);
  auto holder = StartWorker(1);
  AwaitReady();
  const auto next = StartWorker(1);
  ASSERT_TRUE(next->WaitStderr("rank 1 is taken by pid ", Long()));
  holder->Signal(SIGKILL);
  ASSERT_TRUE(coordinator_->WaitStderr("serving again", Long()));
  EXPECT_TRUE(IsRunning(next->pid()));
}

TEST_F(ExternalWorkersTest, TheirExitCodesSayWhetherTheCoordinatorFailed) {
  StartCoordinator();
  auto healthy = StartWorker(0);
  auto wrong = StartWorker(1, OtherWeights());
  EXPECT_EQ(coordinator_->WaitExit(Long()), 1);
  EXPECT_EQ(wrong->WaitExit(Long()), 1);
  EXPECT_EQ(healthy->WaitExit(Long()), 1);

  StartCoordinator();
  healthy = StartWorker(0);
  auto other = StartWorker(1);
  AwaitReady();
  coordinator_->Signal(SIGTERM);
  EXPECT_EQ(coordinator_->WaitExit(Long()), 0);
  EXPECT_EQ(healthy->WaitExit(Long()), 0);
  EXPECT_EQ(other->WaitExit(Long()), 0);
}

}  // namespace
}  // namespace tandem::testing
