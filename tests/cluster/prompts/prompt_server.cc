#include "tests/cluster/prompts/prompt_server.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "tests/cluster/golden_cases.h"

namespace tandem::testing {

std::vector<PromptCase> AllPromptCases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(GoldenPath("arch"))) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  std::vector<PromptCase> all;
  for (const std::string& name : names) {
    all.push_back({name, 1, 0});
    all.push_back({name, 2, 5});
  }
  return all;
}

std::string PromptCaseName(const ::testing::TestParamInfo<PromptCase>& info) {
  std::string text = absl::StrCat(info.param.model, "_tp", info.param.ranks);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

std::unique_ptr<TestServer> StartFor(const std::string& path, const PromptCase& one) {
  std::vector<std::string> flags = {"--kv-cache-type", "f32", "--tensor-parallel-size",
                                    absl::StrCat(one.ranks)};
  if (one.chunk != 0) {
    flags.insert(flags.end(), {"--chunked-prefill-size", absl::StrCat(one.chunk)});
  }
  return TestServer::Start(path, flags);
}

void AskThroughALoss(TestServer& server, const std::function<void()>& ask) {
  std::atomic<int> num_answered{0};
  std::atomic<bool> done{false};
  std::thread asking([&] {
    for (int round = 0; !done && round < 10000; ++round) {
      ask();
      ++num_answered;
    }
  });
  const Deadline patience = Deadline::After(std::chrono::minutes(2));
  while (num_answered < 2 && !patience.Passed()) std::this_thread::yield();
  kill(server.workers().back(), SIGKILL);
  EXPECT_TRUE(server.WaitStat("tandem_restarts_total", 1, patience));
  const int before = num_answered;
  while (num_answered < before + 2 && !patience.Passed()) std::this_thread::yield();
  EXPECT_GE(num_answered, before + 2);
  done = true;
  asking.join();
}

}  // namespace tandem::testing
