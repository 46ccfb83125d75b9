// A server over workers with a device: its memory plan, its decode graphs, its tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/server.h"

namespace tandem::testing {
namespace {

constexpr char kDeviceWorker[] = "tests/cluster/device/fake_device_worker";

std::vector<std::string> DeviceFlags(const std::string& ranks) {
  std::vector<std::string> flags = {"--device", "cuda", "--step-transport", "grpc"};
  for (const char* flag : {"--kv-cache-type=f32", "--max-model-len=256", "--block-size=8"}) {
    flags.push_back(flag);
  }
  flags.insert(flags.end(), {"--tensor-parallel-size", ranks});
  return flags;
}

class DeviceWorkerTest : public ::testing::TestWithParam<const char*> {};

// Prompts of several lengths at once: steps are mixed first, then decode in graphs of falling
// sizes.
TEST_P(DeviceWorkerTest, GraphsGiveTheReferenceTokens) {
  const GoldenModel golden = ReadArchGolden("llama");
  std::string lines;
  for (const GoldenCase& one : golden.cases) {
    absl::StrAppend(
        &lines, "{\"prompt_token_ids\": [", absl::StrJoin(one.tokens, ","),
        "], \"temperature\": 0, \"ignore_eos\": true, \"max_tokens\": ", one.greedy.size(), "}\n");
  }
  const auto server = TestServer::Start(GoldenPath("arch/llama/model.gguf"),
                                        DeviceFlags(GetParam()), kDeviceWorker);
  ASSERT_NE(server, nullptr);
  const Finished answers = server->Generate({"--prompts-file", "-"}, lines);
  ASSERT_EQ(answers.exit_code, 0) << answers.err;
  std::istringstream out(answers.out);
  for (const GoldenCase& one : golden.cases) {
    std::string line;
    ASSERT_TRUE(std::getline(out, line));
    EXPECT_EQ(nlohmann::json::parse(line).at("token_ids").get<std::vector<TokenId>>(), one.greedy);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, DeviceWorkerTest, ::testing::Values("1", "2", "4"));

TEST(DeviceWorkerStartTest, ShowsThePlanAndTheCapture) {
  std::vector<std::string> argv = {kCoordinator, "--model",     GoldenPath("arch/llama/model.gguf"),
                                   "--listen",   "127.0.0.1:0", "--worker-binary",
                                   kDeviceWorker};
  const auto flags = DeviceFlags("1");
  argv.insert(argv.end(), flags.begin(), flags.end());
  const auto deadline = Deadline::After(std::chrono::seconds(60));
  const auto coordinator = Program::Start(argv);
  ASSERT_TRUE(coordinator->WaitStdout("ready: listening on ", deadline)) << coordinator->Stderr();
  const std::string log = coordinator->Stderr();
  for (const char* item :
       {"weights ", "activations ", "workspace ", "step buffers ", "block tables ", "KV cache ",
        "total ", "at most 922 MiB of the device's 1 GiB",
        "captured decode graphs for up to 32 sequences"}) {
    EXPECT_NE(log.find(item), std::string::npos) << item << " in " << log;
  }
}

TEST(DeviceWorkerStartTest, WhatCannotFitIsRefusedInOneLine) {
  std::vector<std::string> argv = {
      kCoordinator, "--model",         GoldenPath("arch/llama/model.gguf"),
      "--listen",   "127.0.0.1:0",     "--num-kv-blocks",
      "1000000",    "--worker-binary", kDeviceWorker};
  const auto flags = DeviceFlags("1");
  argv.insert(argv.end(), flags.begin(), flags.end());
  const Finished finished = RunProgram(argv);
  EXPECT_EQ(finished.exit_code, 1);
  const size_t begin = finished.err.find("tandem_coordinator: rank 0: does not fit: weights ");
  ASSERT_NE(begin, std::string::npos) << finished.err;
  EXPECT_EQ(std::count(finished.err.begin() + static_cast<std::ptrdiff_t>(begin),
                       finished.err.end(), '\n'),
            1);
  EXPECT_NE(finished.err.find("lower --num-kv-blocks", begin), std::string::npos) << finished.err;
}

}  // namespace
}  // namespace tandem::testing
