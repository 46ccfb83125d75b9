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
      .table_bytes = 5,
      .graph_bytes = 7,
      .kv = {.block_size = 16,
             .groups = {{.window_tokens = 0, .bytes_per_block = 160, .most_blocks = 1000},
                        {.window_tokens = 128, .bytes_per_block = 80, .most_blocks = 12}}},
      .num_kv_blocks = 62};
  EXPECT_EQ(plan.kv_bytes(), 62u * 160 + 12 * 80);
  EXPECT_EQ(plan.total_bytes(), plan.kv_bytes() + 1135);
  EXPECT_EQ(plan.Lines(),
            (std::vector<std::string>{
                "weights      1000 B", "activations  100 B", "workspace    20 B",
                "step buffers 3 B", "block tables 5 B", "graphs       7 B",
                "KV cache     10.6 KiB (62 blocks of 16 tokens, 160 B each; 12 for a window of 128 "
                "tokens, 80 B each)",
                "total        11.7 KiB"}));
}

TEST(RunnerPlanTest, RecurrentStatesAreCounted) {
  RunnerPlan plan;
  plan.state_bytes = 4096;
  plan.state_slots = 8;
  EXPECT_EQ(plan.total_bytes(), 4096u);
  EXPECT_EQ(plan.Lines()[5], "states       4 KiB (8 sequences)");
}

RunnerPlan DevicePlan(uint64_t limit) {
  return {.weights_bytes = 1000,
          .activation_bytes = 100,
          .workspace_bytes = 20,
          .buffers_bytes = 3,
          .table_bytes = 7,
          .kv = {.block_size = 16,
                 .groups = {{.window_tokens = 0, .bytes_per_block = 10, .most_blocks = 1000}}},
          .num_kv_blocks = 0,
          .device =
              DeviceBudget{.total_bytes = 2 * limit, .free_bytes = 2 * limit, .utilization = 0.5}};
}

TEST(CheckHostMemoryTest, SaysWhatDoesNotFitAndWhatToDo) {
  RunnerOptions options;
  RunnerPlan plan = DevicePlan(0);
  plan.device.reset();
  plan.num_kv_blocks = 2;
  EXPECT_EQ(CheckHostMemory(options, plan, 1, 1150), absl::OkStatus());
  const absl::Status status = CheckHostMemory(options, plan, 1, 1149);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(status.message()),
            "does not fit: weights 1000 B + activations 100 B + workspace 20 B + step buffers 3 B "
            "+ block tables 7 B + decode graphs 0 B + KV cache 20 B (2 blocks) = 1.12 "
            "KiB, only 1.12 KiB of this host's memory are free: lower --num-kv-blocks or "
            "--kv-cache-memory, raise --tensor-parallel-size, compute on the mapped file with "
            "--no-repack-weights, or take a smaller quantisation");
  EXPECT_EQ(CheckHostMemory(options, plan, 2, 2300), absl::OkStatus());
  EXPECT_NE(CheckHostMemory(options, plan, 2, 2299).message().find(" for each of 2 ranks, only "),
            absl::string_view::npos);
  // Pages of the file are given back as they are needed.
  options.config.device.repack_weights = false;
  EXPECT_EQ(CheckHostMemory(options, plan, 1, 150), absl::OkStatus());
  EXPECT_FALSE(CheckHostMemory(options, plan, 1, 149).ok());
}

TEST(SizeKvCacheTest, FillsTheBudgetAndNoMore) {
  RunnerPlan plan = DevicePlan(1179);
  ASSERT_TRUE(SizeKvCache({}, plan).ok());
  EXPECT_EQ(plan.num_kv_blocks, 4u);
  EXPECT_EQ(plan.Lines().back(),
            "total        1.14 KiB, at most 1.15 KiB of the device's 2.3 KiB "
            "(utilization 0.5)");
  RunnerPlan one = DevicePlan(1140);
  ASSERT_TRUE(SizeKvCache({}, one).ok());
  EXPECT_EQ(one.num_kv_blocks, 1u);
  RunnerPlan none = DevicePlan(1139);
  EXPECT_EQ(SizeKvCache({}, none).code(), absl::StatusCode::kResourceExhausted);
}

TEST(SizeKvCacheTest, StatesThatDoNotFitAreNamedWithTheirSequences) {
  RunnerPlan plan = DevicePlan(3000);
  plan.state_bytes = 2000;
  plan.state_slots = 8;
  const absl::Status status = SizeKvCache({}, plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      status.message(),
      "does not fit: weights 1000 B + activations 100 B + workspace 20 B + step buffers 3 B + "
      "block tables 7 B + decode graphs 0 B + recurrent states 1.95 KiB (8 sequences) + KV "
      "cache 10 B (1 block) = 3.07 KiB, at most 2.93 KiB of the device's 5.86 KiB "
      "(utilization 0.5): raise --tensor-parallel-size or --gpu-memory-utilization, lower "
      "--max-num-batched-tokens or --max-num-seqs, or take a smaller quantisation");
  plan.state_bytes = 1860;
  EXPECT_TRUE(SizeKvCache({}, plan).ok());
  EXPECT_EQ(plan.num_kv_blocks, 1u);
}

TEST(SizeKvCacheTest, WhatWasFreeIsABoundToo) {
  RunnerPlan plan = DevicePlan(5000);
  plan.device->free_bytes = 2150;  // a tenth of 10,000 is left of it
  ASSERT_TRUE(SizeKvCache({}, plan).ok());
  EXPECT_EQ(plan.num_kv_blocks, 2u);
  EXPECT_NE(plan.Lines().back().find("(utilization 0.5, 2.1 KiB were free)"), std::string::npos)
      << plan.Lines().back();
}

// What communicators, kernels' code and the rounding of allocations take is not planned.
TEST(DeviceBudgetTest, OfWhatOthersLeaveAMarginStaysFree) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const auto limit = [](uint64_t total, uint64_t free, double utilization) {
    return DeviceBudget{.total_bytes = total, .free_bytes = free, .utilization = utilization}
        .limit_bytes();
  };
  EXPECT_EQ(limit(80 * kGiB, 80 * kGiB, 0.9), 72 * kGiB);
  EXPECT_EQ(limit(80 * kGiB, 79 * kGiB, 0.9), 71 * kGiB + 1) << "the context";
  EXPECT_EQ(limit(80 * kGiB, 50 * kGiB, 0.9), 42 * kGiB + 1) << "another process";
  EXPECT_EQ(limit(80 * kGiB, 44 * kGiB, 0.45), 36 * kGiB) << "another server with 0.45";
  EXPECT_EQ(limit(80 * kGiB, 50 * kGiB, 1), 50 * kGiB) << "no margin is asked for";
  EXPECT_EQ(limit(80 * kGiB, 7 * kGiB, 0.9), 0u);
}

TEST(SizeKvCacheTest, WhatIsAskedForMustFit) {
  RunnerPlan plan = DevicePlan(1179);
  RunnerOptions options;
  options.config.cache.num_kv_blocks = 4;
  EXPECT_TRUE(SizeKvCache(options, plan).ok());
  options.config.cache.num_kv_blocks = 5;
  const absl::Status blocks = SizeKvCache(options, plan);
  EXPECT_EQ(blocks.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(blocks.message().find("lower --num-kv-blocks"), absl::string_view::npos) << blocks;
  EXPECT_NE(blocks.message().find("KV cache 50 B (5 blocks) = 1.15 KiB"), absl::string_view::npos)
      << blocks;
  options.config.cache.num_kv_blocks = 0;
  options.kv_cache_bytes = 9;
  EXPECT_NE(SizeKvCache(options, plan).message().find("no KV block fits"), absl::string_view::npos);
}

}  // namespace
}  // namespace tandem::worker
