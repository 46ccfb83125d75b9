// What is said of the load of a model and its draft model: one sum, and how much of it is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/runtime/runner_rig.h"
#include "worker/model/loaded_model.h"

namespace tandem::worker {
namespace {

constexpr char kQwen[] = "tests/golden/arch/qwen3/model.gguf";

struct Progress {
  std::vector<uint64_t> done;
  uint64_t total = 0;
  uint64_t weight_bytes = 0;  // of what was loaded
};

Progress LoadOf(const std::string& draft_path) {
  LoadOptions options = LlamaOptions("cpu");
  options.config.model.spec.max_model_len = 64;
  options.config.model.draft_path = draft_path;
  Progress progress;
  auto described = DescribeModel(options);
  EXPECT_TRUE(described.ok()) << described.status();
  if (!described.ok()) return progress;
  const auto model = LoadWeights(*std::move(described), [&](uint64_t done, uint64_t total) {
    EXPECT_TRUE(progress.done.empty() || total == progress.total) << total;
    progress.done.push_back(done);
    progress.total = total;
  });
  EXPECT_TRUE(model.ok()) << model.status();
  if (model.ok()) progress.weight_bytes = (*model)->weight_bytes();
  return progress;
}

TEST(LoadProgressTest, RisesToTheWeightsOfAll) {
  size_t parts_alone = 0;
  for (const char* draft : {"", kQwen}) {
    const Progress progress = LoadOf(draft);
    EXPECT_GT(progress.done.size(), parts_alone + 10);
    EXPECT_EQ(progress.total, progress.weight_bytes);
    EXPECT_EQ(progress.done.back(), progress.total);
    EXPECT_TRUE(std::ranges::is_sorted(progress.done));
    parts_alone = progress.done.size();
  }
}

}  // namespace
}  // namespace tandem::worker
