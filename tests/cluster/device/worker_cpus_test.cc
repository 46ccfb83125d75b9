// Real workers on CPUs of their own, all threads of them, and after a restart.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/cpu_set.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/server.h"

namespace tandem::testing {
namespace {

constexpr auto kPatience = std::chrono::minutes(1);

// What the system says of each of the process's threads.
std::set<std::string> CpusOf(pid_t pid) {
  std::set<std::string> texts;
  for (const auto& thread :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"))) {
    const std::string status = ReadProcFile(thread.path() / "status");
    constexpr char kName[] = "Cpus_allowed_list:\t";
    const size_t begin = status.find(kName);
    if (begin == std::string::npos) continue;  // it has ended
    const size_t value = begin + sizeof(kName) - 1;
    texts.insert(status.substr(value, status.find('\n', value) - value));
  }
  return texts;
}

// By rank: workers are told their rank on their command line.
std::set<std::string> CpusOfRank(const TestServer& server, const std::string& rank) {
  for (const pid_t pid : server.workers()) {
    const std::string arguments = ReadProcFile(absl::StrCat("/proc/", pid, "/cmdline"));
    if (arguments.find(std::string("--rank\0", 7) + rank) != std::string::npos) return CpusOf(pid);
  }
  return {};
}

TEST(WorkerCpusTest, EachRankRunsOnItsOwnCpus) {
  const CpuSet all = UsableCpus();
  if (all.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const std::string first = absl::StrCat(all[1]), second = absl::StrCat(all[0]);
  auto server = TestServer::Start(
      GoldenPath("arch/llama/model.gguf"),
      {"--tensor-parallel-size", "2", "--worker-cpus", absl::StrCat(first, "/", second)});
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(CpusOfRank(*server, "0"), std::set{first});
  EXPECT_EQ(CpusOfRank(*server, "1"), std::set{second});
  for (const pid_t worker : server->workers()) kill(worker, SIGKILL);
  ASSERT_TRUE(server->WaitStatAtLeast("tandem_restarts_total", 1, Deadline::After(kPatience)));
  const Finished finished = server->Generate({"--prompt-token-ids", "1,2,3", "--max-tokens", "4"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(CpusOfRank(*server, "0"), std::set{first});
  EXPECT_EQ(CpusOfRank(*server, "1"), std::set{second});
}

// Two threads compute; the others may run on both.
TEST(WorkerCpusTest, EachThreadThatComputesHasACpu) {
  const CpuSet all = UsableCpus();
  if (all.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const CpuSet two = {all[0], all[1]};
  auto server = TestServer::Start(GoldenPath("arch/llama/model.gguf"),
                                  {"--tensor-parallel-size", "1", "--threads-per-worker", "2",
                                   "--worker-cpus", CpuSetText(two)});
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(CpusOfRank(*server, "0"),
            (std::set{absl::StrCat(two[0]), absl::StrCat(two[1]), CpuSetText(two)}));
}

TEST(WorkerCpusTest, CpusThatTheMachineDoesNotHave) {
  const std::string cpus = absl::StrCat(UsableCpus().front(), ",4095");
  const Finished finished =
      RunProgram({kCoordinator, "--model", GoldenPath("arch/llama/model.gguf"), "--listen",
                  "127.0.0.1:0", "--worker-binary", kWorker, "--worker-cpus", cpus});
  EXPECT_EQ(finished.exit_code, 1);
  const std::string refused =
      absl::StrCat("--worker-cpus ", cpus, ": the worker has no CPU 4095, its CPUs are ");
  EXPECT_NE(finished.err.find(refused), std::string::npos) << finished.err;
}

}  // namespace
}  // namespace tandem::testing
