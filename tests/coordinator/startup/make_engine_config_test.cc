#include "coordinator/startup/make_engine_config.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace tandem::coordinator {
namespace {

using std::chrono::seconds;

model::ModelSpec Model() {
  model::ModelSpec spec;
  spec.vocab_size = 100;
  spec.kv_groups.resize(2);
  spec.kv_groups[1].window_tokens = 8;
  return spec;
}

config::WorkerConfig Worker() {
  config::WorkerConfig worker;
  worker.model.spec.max_model_len = 64;
  worker.limits = {.max_num_seqs = 3, .max_num_batched_tokens = 48};
  return worker;
}

EngineConfig Make(const config::SchedulingConfig& scheduling,
                  const model::ModelSpec& spec = Model()) {
  return MakeEngineConfig(Worker(), scheduling, spec, Epoch{4}, {20, 10});
}

TEST(MakeEngineConfigTest, EverySettingOfSchedulingArrives) {
  const EngineConfig config = Make({.policy = SchedulingPolicy::kPrefillFirst,
                                    .chunked_prefill_size = 7,
                                    .max_queued_requests = 11,
                                    .max_queued_tokens = 13,
                                    .priority_ageing = seconds(17),
                                    .max_queue_skips = 19,
                                    .target_itl_ms = 23,
                                    .enable_prefix_caching = false,
                                    .overlap = false});
  EXPECT_EQ(config.scheduler.policy, SchedulingPolicy::kPrefillFirst);
  EXPECT_EQ(config.scheduler.chunked_prefill_size, 7u);
  EXPECT_EQ(config.max_queued_requests, 11u);
  EXPECT_EQ(config.max_queued_tokens, 13u);
  EXPECT_EQ(config.priority_ageing, seconds(17));
  EXPECT_EQ(config.scheduler.max_queue_skips, 19u);
  EXPECT_EQ(config.scheduler.target_itl, std::chrono::milliseconds(23));
  EXPECT_FALSE(config.kv_cache.enable_prefix_cache);
  EXPECT_EQ(config.pipeline_depth, 1u);
}

TEST(MakeEngineConfigTest, LongStepsDoNotOverlapOnTheCpu) {
  EXPECT_EQ(Make({}).overlap_below, std::chrono::milliseconds(10));
  config::WorkerConfig worker = Worker();
  worker.device.device = config::Device::kCuda;
  EXPECT_EQ(MakeEngineConfig(worker, {}, Model(), Epoch{4}, {20, 10}).overlap_below,
            Duration::max());
}

TEST(MakeEngineConfigTest, LimitsAndBlocksAreTheWorkers) {
  const EngineConfig config = Make({});
  EXPECT_EQ(config.scheduler.max_num_seqs, 3u);
  EXPECT_EQ(config.scheduler.max_num_batched_tokens, 48u);
  EXPECT_EQ(config.scheduler.chunked_prefill_size, 48u);  // unless it is set
  EXPECT_EQ(config.scheduler.max_model_len, 64u);
  EXPECT_EQ(config.epoch, Epoch{4});
  ASSERT_EQ(config.kv_cache.groups.size(), 2u);
  EXPECT_EQ(config.kv_cache.groups[0].num_blocks, 20u);
  EXPECT_EQ(config.kv_cache.groups[1].num_blocks, 10u);
  EXPECT_EQ(config.kv_cache.groups[1].window_tokens, 8u);
}

TEST(MakeEngineConfigTest, DraftsAreThoseOfTheSetting) {
  EXPECT_EQ(Make({.speculation = config::Speculation::kOff}).max_draft_tokens, 0u);
  const EngineConfig config =
      Make({.speculation = config::Speculation::kNgram, .max_draft_tokens = 5});
  EXPECT_EQ(config.max_draft_tokens, 5u);
  EXPECT_EQ(config.scheduler.max_draft_rows, 8u);
  EXPECT_FALSE(config.workers_guess);
  const EngineConfig by_model =
      Make({.speculation = config::Speculation::kDraft, .max_draft_tokens = 5});
  EXPECT_EQ(by_model.max_draft_tokens, 5u);
  EXPECT_TRUE(by_model.workers_guess);
  EXPECT_TRUE(Make({.speculation = config::Speculation::kMtp}).workers_guess);
}

TEST(MakeEngineConfigTest, ByDefaultPromptsOfDenseModelsAreLookedUpOnTheCpu) {
  EXPECT_EQ(Make({.max_draft_tokens = 5}).max_draft_tokens, 5u);
  model::ModelSpec mixture = Model(), hybrid = Model();
  mixture.moe.emplace();
  hybrid.delta_net.emplace();
  EXPECT_EQ(Make({}, mixture).max_draft_tokens, 0u);
  EXPECT_EQ(Make({}, hybrid).max_draft_tokens, 0u);
  EXPECT_FALSE(Make({}).workers_guess);
  config::WorkerConfig worker = Worker();
  worker.device.device = config::Device::kCuda;
  EXPECT_EQ(MakeEngineConfig(worker, {}, Model(), Epoch{4}, {20, 10}).max_draft_tokens, 0u);
}

TEST(WhyNoDraftsTest, NothingToSayWhereThereAreSome) {
  EXPECT_EQ(WhyNoDrafts(Worker(), {.speculation = config::Speculation::kNgram}, Model()), "");
  EXPECT_EQ(WhyNoDrafts(Worker(), {.chunked_prefill_size = 1}, Model()), "");
  config::WorkerConfig one = Worker();
  one.limits.max_num_seqs = 1;
  EXPECT_EQ(WhyNoDrafts(one, {.speculation = config::Speculation::kNgram}, Model()), "");
}

TEST(WhyNoDraftsTest, RecurrentLayersNeedSnapshots) {
  model::ModelSpec spec = Model();
  spec.delta_net.emplace();
  const config::SchedulingConfig without = {.enable_prefix_caching = false,
                                            .speculation = config::Speculation::kNgram};
  EXPECT_EQ(Make(without, spec).max_draft_tokens, 0u);
  EXPECT_NE(WhyNoDrafts(Worker(), without, spec).find("--no-enable-prefix-caching"),
            std::string::npos);
  config::WorkerConfig worker = Worker();
  worker.cache.state_snapshot_interval = 64;
  const config::SchedulingConfig with = {.speculation = config::Speculation::kNgram};
  EXPECT_GT(MakeEngineConfig(worker, with, spec, Epoch{4}, {20, 10}).max_draft_tokens, 0u);
  EXPECT_EQ(WhyNoDrafts(worker, with, spec), "");
}

TEST(WhyNoDraftsTest, AStepOfOneTokenHasNoRoom) {
  const std::string reason = WhyNoDrafts(
      Worker(), {.chunked_prefill_size = 1, .speculation = config::Speculation::kNgram}, Model());
  EXPECT_NE(reason.find("--chunked-prefill-size"), std::string::npos) << reason;
}

}  // namespace
}  // namespace tandem::coordinator
