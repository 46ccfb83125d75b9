// A rank that ended or is stuck is replaced and the others keep running: the next epoch gives the
// same bits.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "tests/cluster/program.h"
#include "tests/cluster/worker_driver.h"

namespace tandem::testing {
namespace {

constexpr char kModel[] = "tests/golden/arch/llama/model.gguf";

using Logits = std::vector<std::vector<float>>;

class SupervisorTest : public ::testing::TestWithParam<config::StepTransport> {
 protected:
  static config::ServerConfig Options() {
    config::ServerConfig options = TestServerConfig(kModel);
    options.cluster.tensor_parallel_size = 2;
    options.worker.transport.step_transport = GetParam();
    return options;
  }
  // Of the last positions of a prompt, in two chunks.
  static Logits Run(WorkerDriver& driver) {
    driver.Reset();
    auto logits = driver.Prefill({1, 5, 9, 20, 33, 7, 8, 90}, {6, 7}, 5);
    EXPECT_TRUE(logits.ok()) << logits.status();
    return logits.ok() ? *logits : Logits();
  }
  static std::vector<pid_t> Workers() {
    std::vector<pid_t> pids = ChildrenOf(getpid());
    std::sort(pids.begin(), pids.end());
    return pids;
  }
};

TEST_P(SupervisorTest, AKilledRankIsReplacedAndTheOtherContinues) {
  auto driver = WorkerDriver::Start(Options());
  ASSERT_TRUE(driver.ok()) << driver.status();
  const Logits before = Run(**driver);
  const std::vector<pid_t> first = Workers();
  ASSERT_EQ(first.size(), 2u);
  kill(first[1], SIGKILL);
  ASSERT_TRUE(WaitGone({first[1]}, Deadline::After(std::chrono::seconds(60))));
  const absl::Status brought = (*driver)->BringAgain();
  ASSERT_TRUE(brought.ok()) << brought;
  const std::vector<pid_t> second = Workers();
  ASSERT_EQ(second.size(), 2u);
  EXPECT_NE(std::find(second.begin(), second.end(), first[0]), second.end());
  EXPECT_EQ(std::find(second.begin(), second.end(), first[1]), second.end());
  EXPECT_EQ(Run(**driver), before);
}

TEST_P(SupervisorTest, AStuckRankIsReplaced) {
  config::ServerConfig options = Options();
  options.worker.transport.step_timeout = std::chrono::seconds(5);
  auto driver = WorkerDriver::Start(options);
  ASSERT_TRUE(driver.ok()) << driver.status();
  const Logits before = Run(**driver);
  const std::vector<pid_t> first = Workers();
  ASSERT_EQ(first.size(), 2u);
  kill(first[1], SIGSTOP);
  const absl::Status brought = (*driver)->BringAgain();
  ASSERT_TRUE(brought.ok()) << brought;
  const std::vector<pid_t> second = Workers();
  ASSERT_EQ(second.size(), 2u);
  EXPECT_NE(std::find(second.begin(), second.end(), first[0]), second.end());
  EXPECT_EQ(std::find(second.begin(), second.end(), first[1]), second.end());
  EXPECT_EQ(Run(**driver), before);
}

TEST_P(SupervisorTest, LivingWorkersTakeTheNextEpoch) {
  auto driver = WorkerDriver::Start(Options());
  ASSERT_TRUE(driver.ok()) << driver.status();
  const Logits before = Run(**driver);
  const std::vector<pid_t> pids = Workers();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE((*driver)->BringAgain().ok());
    EXPECT_EQ(Workers(), pids);
    EXPECT_EQ(Run(**driver), before);
  }
}

TEST_P(SupervisorTest, WorkersOutliveTheThreadThatAskedForThem) {
  absl::StatusOr<std::unique_ptr<WorkerDriver>> driver = absl::UnknownError("not started");
  std::thread([&] { driver = WorkerDriver::Start(Options()); }).join();
  ASSERT_TRUE(driver.ok()) << driver.status();
  EXPECT_FALSE(Run(**driver).empty());
  EXPECT_EQ(Workers().size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Transports, SupervisorTest,
                         ::testing::Values(config::StepTransport::kShm,
                                           config::StepTransport::kGrpc),
                         [](const auto& test) {
                           return test.param == config::StepTransport::kShm ? "shm" : "grpc";
                         });

}  // namespace
}  // namespace tandem::testing
