#include "coordinator/scheduler/admission.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem::coordinator {
namespace {

SchedulerConfig Scheduling() {
  return {.max_num_seqs = 4,
          .max_num_batched_tokens = 16,
          .chunked_prefill_size = 8,
          .max_model_len = 100,
          .policy = SchedulingPolicy::kDecodeFirst};
}

KvCacheConfig Cache(uint32_t blocks, uint32_t window = 0) {
  return {.block_size = 4,
          .enable_prefix_cache = true,
          .groups = {{.num_blocks = blocks, .window_tokens = window}}};
}

void ExpectRefused(const absl::Status& status, const std::string& message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), message);
}

TEST(AdmissionTest, RefusesWhatExceedsTheContextWithBothNumbers) {
  const Admission admission(Scheduling(), Cache(1000));
  EXPECT_TRUE(admission.Check(60, 40).ok());
  ExpectRefused(admission.Check(60, 41),
                "prompt of 60 tokens and max_tokens 41 exceed the context of 100 tokens "
                "(--max-model-len); with this prompt max_tokens may be at most 40");
  ExpectRefused(admission.Check(100, 1),
                "prompt of 100 tokens and max_tokens 1 exceed the context of 100 tokens "
                "(--max-model-len); a prompt may have at most 99 tokens");
  EXPECT_FALSE(admission.Check(101, 1).ok());
  EXPECT_FALSE(admission.Check(1, UINT64_MAX).ok());
  EXPECT_FALSE(admission.Check(UINT64_MAX, UINT64_MAX).ok());
}

TEST(AdmissionTest, RefusesWhatNeedsMoreBlocksThanExist) {
  const Admission admission(Scheduling(), Cache(5));
  // The last token is never computed: 20 tokens in the cache.
  EXPECT_TRUE(admission.Check(11, 10).ok());
  ExpectRefused(
      admission.Check(12, 10),
      "prompt of 12 tokens and max_tokens 10 need 6 KV blocks of 4 tokens, the cache has 5; with "
      "this prompt max_tokens may be at most 9");
  EXPECT_TRUE(admission.Check(12, 9).ok());
}

TEST(AdmissionTest, AWindowNeedsOnlyItsOwn) {
  // Window 6 and a chunk of 8: 13 tokens touch at most 4 blocks.
  EXPECT_TRUE(Admission(Scheduling(), Cache(4, 6)).Check(50, 50).ok());
  const absl::Status refused = Admission(Scheduling(), Cache(3, 6)).Check(50, 50);
  EXPECT_NE(refused.message().find(
                "prompt of 50 tokens and max_tokens 50 need 4 KV blocks of 4 tokens, the cache has "
                "3 for layers with a window of 6 tokens; "),
            absl::string_view::npos)
      << refused;
}

TEST(AdmissionTest, EveryGroupMustHaveRoom) {
  KvCacheConfig cache = Cache(25);
  cache.groups.push_back({.num_blocks = 4, .window_tokens = 6});
  EXPECT_TRUE(Admission(Scheduling(), cache).Check(50, 50).ok());
  cache.groups[0].num_blocks = 24;
  EXPECT_FALSE(Admission(Scheduling(), cache).Check(50, 50).ok());
  cache.groups[0].num_blocks = 25;
  cache.groups[1].num_blocks = 3;
  EXPECT_FALSE(Admission(Scheduling(), cache).Check(50, 50).ok());
}

TEST(SchedulerConfigTest, RefusesABudgetBelowTheSeats) {
  SchedulerConfig config = Scheduling();
  EXPECT_TRUE(config.Validate().ok());
  config.max_num_batched_tokens = 3;
  ExpectRefused(config.Validate(),
                "--max-num-batched-tokens 3 is below --max-num-seqs 4: every running sequence "
                "needs a token of each step");
}

TEST(SchedulerConfigTest, RefusesZeroAndHugeValues) {
  for (uint32_t SchedulerConfig::*field :
       {&SchedulerConfig::max_num_seqs, &SchedulerConfig::max_num_batched_tokens,
        &SchedulerConfig::chunked_prefill_size, &SchedulerConfig::max_model_len}) {
    for (uint32_t value : {0u, 1u << 31}) {
      SchedulerConfig config = Scheduling();
      config.*field = value;
      EXPECT_EQ(config.Validate().code(), absl::StatusCode::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace tandem::coordinator
