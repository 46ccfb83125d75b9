// Two ranks on the emulated CUDA backend that lose one while decode graphs with collectives are
// alive: through a server, which ends or replaces it, and step by step, where the survivor takes
// the next epoch.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/cuda_worker.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/program.h"
#include "tests/cluster/server.h"
#include "tests/cluster/worker_driver.h"

namespace tandem::testing {
namespace {

// Far below the time that a lost connection may take; a loaded machine is slow.
constexpr auto kLossNoticed = std::chrono::seconds(40);
constexpr auto kPatience = std::chrono::seconds(60);

std::vector<pid_t> Workers() {
  std::vector<pid_t> pids = ChildrenOf(getpid());
  std::sort(pids.begin(), pids.end());
  return pids;
}

std::unique_ptr<TestServer> StartServer(const std::string& max_restarts) {
  return TestServer::Start(
      GoldenPath("arch/llama/model.gguf"),
      {"--device", "cuda", "--tensor-parallel-size", "2", "--max-restarts", max_restarts},
      FindCudaWorker(2).binary);
}

// Its tokens may differ after the loss: on this backend a row's bits depend on how many are
// computed at a time.
TEST(CudaFailureTest, AStreamContinuesWhenARankIsKilledWhileGraphsAreAlive) {
  const auto server = StartServer("5");
  ASSERT_NE(server, nullptr);
  auto stream = server->StartGenerate({"--prompt-token-ids", "1,2,3", "--max-tokens", "200",
                                       "--ignore-eos", "--temperature", "0", "--json"});
  ASSERT_TRUE(server->WaitStatAtLeast("tandem_steps_total", 1, Deadline::After(kPatience)));
  kill(server->workers().at(1), SIGKILL);
  EXPECT_EQ(stream->WaitExit(Deadline::After(kPatience)), 0) << stream->Stderr();
  EXPECT_NE(stream->Stdout().find("\"completion_tokens\":200"), std::string::npos)
      << stream->Stdout();
  EXPECT_TRUE(server->WaitStatAtLeast("tandem_restarts_total", 1, Deadline::After(kPatience)));
}

TEST(CudaFailureTest, AServerNamesTheRankKilledWhileGraphsAreAlive) {
  const auto server = StartServer("0");
  ASSERT_NE(server, nullptr);
  const std::vector<pid_t> workers = server->workers();
  ASSERT_EQ(workers.size(), 2u);
  auto stream = server->StartGenerate({"--prompt-token-ids", "1,2,3", "--max-tokens", "2000",
                                       "--ignore-eos", "--temperature", "0"});
  ASSERT_TRUE(server->WaitStatAtLeast("tandem_steps_total", 1, Deadline::After(kPatience)));
  kill(workers[1], SIGKILL);
  EXPECT_EQ(server->program().WaitExit(Deadline::After(kLossNoticed)), 1);
  EXPECT_NE(server->program().Stderr().find("tandem_coordinator: rank 1"), std::string::npos)
      << server->program().Stderr();
  EXPECT_TRUE(WaitGone(workers, Deadline::After(kLossNoticed))) << "a worker is left";
  EXPECT_EQ(stream->WaitExit(Deadline::After(kPatience)), 1);
}

// So ranks can share a GPU, under a program that starts them with --device-index.
TEST(CudaFailureTest, AStartedWorkerTakesTheDeviceOfItsCommandLine) {
  const std::string script = ::testing::TempDir() + "/worker_on_device_9";
  std::ofstream(script) << "#!/bin/sh\nexec '" << FindCudaWorker(1).binary
                        << "' \"$@\" --device-index 9\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const Finished finished =
      RunProgram({kCoordinator, "--model", GoldenPath("arch/llama/model.gguf"), "--listen",
                  "127.0.0.1:0", "--device", "cuda", "--worker-binary", script});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_NE(finished.err.find("rank 0: this rank needs GPU 9"), std::string::npos) << finished.err;
}

TEST(CudaFailureTest, TheSurvivorOfAReplayTakesTheNextEpoch) {
  config::ServerConfig options = TestServerConfig(GoldenPath("arch/llama/model.gguf"));
  options.worker.device.device = config::Device::kCuda;
  options.worker.limits.max_num_seqs = 2;
  options.cluster.tensor_parallel_size = 2;
  options.cluster.worker_binary = FindCudaWorker(2).binary;
  auto driver = WorkerDriver::Start(options);
  ASSERT_TRUE(driver.ok()) << driver.status();
  const std::vector<TokenId> prompt = {1, 5, 9, 20};
  const auto before = GreedyTokens(**driver, prompt, 3);
  ASSERT_TRUE(before.ok()) << before.status();

  const std::vector<pid_t> first = Workers();
  ASSERT_EQ(first.size(), 2u);
  kill(first[1], SIGKILL);
  const int64_t begin = NowMicros();
  EXPECT_FALSE((*driver)->Decode(7).ok());
  EXPECT_LT(NowMicros() - begin, std::chrono::microseconds(kLossNoticed).count());
  const absl::Status brought = (*driver)->BringAgain();
  ASSERT_TRUE(brought.ok()) << brought;
  const std::vector<pid_t> second = Workers();
  EXPECT_NE(std::find(second.begin(), second.end(), first[0]), second.end());
  const auto after = GreedyTokens(**driver, prompt, 3);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(*after, *before);
}

}  // namespace
}  // namespace tandem::testing
