#include "worker/runtime/runner_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tandem::worker {
namespace {

TEST(RunnerPlanTest, ALinePerItemAndASum) {
  const RunnerPlan plan = {
      .weights_bytes = 1000,
      .activation_bytes = 100,
      .workspace_bytes = 20,
      .buffers_bytes = 3,
      .kv = {.block_tokens = 16,
             .groups = {{.window_tokens = 0, .bytes_per_block = 160, .most_blocks = 1000},
                        {.window_tokens = 128, .bytes_per_block = 80, .most_blocks = 12}}},
      .num_kv_blocks = 62};
  EXPECT_EQ(plan.kv_bytes(), 62u * 160 + 12 * 80);
  EXPECT_EQ(plan.total_bytes(), plan.kv_bytes() + 1123);
  EXPECT_EQ(
      plan.Lines(),
      (std::vector<std::string>{
          "weights      1000 B", "activations  100 B", "workspace    20 B", "step buffers 3 B",
          "KV cache     10.6 KiB (62 blocks of 16 tokens, 160 B each; 12 for a window of 128 "
          "tokens, 80 B each)",
          "total        11.7 KiB"}));
}

}  // namespace
}  // namespace tandem::worker
