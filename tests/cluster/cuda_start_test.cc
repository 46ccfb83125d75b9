// tandem_worker_cuda on a machine without a GPU's driver: one clear line, exit 1.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/cluster/golden_cases.h"
#include "tests/cluster/program.h"

namespace tandem::testing {
namespace {

constexpr char kCudaWorker[] = "worker/tandem_worker_cuda";

class CudaStartTest : public ::testing::TestWithParam<const char*> {};

TEST_P(CudaStartTest, WithoutADriverTheErrorIsOneLine) {
  if (std::filesystem::exists("/dev/nvidiactl")) {
    GTEST_SKIP() << "this machine has an NVIDIA driver";
  }
  const Finished finished = RunProgram(
      {kCoordinator, "--model", GoldenPath("arch/llama/model.gguf"), "--listen", "127.0.0.1:0",
       "--device", "cuda", "--worker-binary", kCudaWorker, "--tensor-parallel-size", GetParam()});
  EXPECT_EQ(finished.exit_code, 1);
  const size_t begin = finished.err.find("tandem_coordinator: rank ");
  ASSERT_NE(begin, std::string::npos) << finished.err;
  const std::string message = finished.err.substr(begin);
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << finished.err;
  EXPECT_NE(message.find("driver"), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(Ranks, CudaStartTest, ::testing::Values("1", "2"));

// The same program serves on the CPU.
TEST(CudaWorkerTest, ServesOnTheCpuToo) {
  const auto coordinator =
      Program::Start({kCoordinator, "--model", GoldenPath("arch/llama/model.gguf"), "--listen",
                      "127.0.0.1:0", "--worker-binary", kCudaWorker});
  EXPECT_TRUE(
      coordinator->WaitStdout("ready: listening on ", Deadline::After(std::chrono::seconds(60))))
      << coordinator->Stderr();
}

}  // namespace
}  // namespace tandem::testing
