// `tandem profile` over workers that take known times: it finds those times.
#include "client/bench/profile.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/event_clock.h"
#include "coordinator/simulation/paced_worker.h"

namespace tandem::client {
namespace {

using coordinator::EngineConfig;
using coordinator::StepMeasurements;

EngineConfig Engine() {
  EngineConfig engine;
  engine.scheduler.max_num_seqs = 6;
  engine.scheduler.max_num_batched_tokens = 48;
  engine.scheduler.chunked_prefill_size = 48;
  engine.scheduler.max_model_len = 1000;
  engine.kv_cache.enable_prefix_cache = false;
  engine.kv_cache.groups = {{.num_blocks = 400}};
  engine.vocab_size = 1000;
  engine.pipeline_depth = 1;
  return engine;
}

StepMeasurements Profile(const EngineConfig& config, const StepMeasurements& real,
                         const ProfileOptions& options, std::vector<std::string>* progress) {
  const EventClock clock;
  std::vector<std::unique_ptr<coordinator::WorkerClient>> workers;
  workers.push_back(std::make_unique<coordinator::PacedWorker>(real, clock));
  coordinator::EngineCore engine(config, coordinator::WorkerGroup(std::move(workers)), clock);
  const auto sizes = ProfileSizes::Of(config, config.scheduler.max_model_len, options);
  EXPECT_TRUE(sizes.ok()) << sizes.status();
  Measure measure(engine, /*seed=*/1, sizes->decode_context, clock);
  const auto steps = ProfileSteps(measure, *sizes, options, [&](std::string_view what) {
    if (progress != nullptr) progress->emplace_back(what);
  });
  EXPECT_TRUE(steps.ok()) << steps.status();
  return *steps;
}

TEST(Profile, FindsHowLongStepsTake) {
  const ProfileOptions options{.server = {}, .context = 500, .decode = 5, .repetitions = 2};
  // Decodes measured at 8 tokens of prompt see 9 to 13 positions, 11 on average.
  const StepMeasurements real{
      .prefill = {.sizes = {1, 2, 4, 8, 16, 32, 48}, .us = {90, 100, 120, 160, 240, 400, 560}},
      .decode = {.sizes = {1, 2, 4, 6}, .us = {95, 110, 150, 190}},
      .decode_positions = 11,
      .decode_position_ns = 300,
      .prefill_position_ns = 20};
  std::vector<std::string> progress;
  const StepMeasurements found = Profile(Engine(), real, options, &progress);
  EXPECT_EQ(found.prefill.sizes, real.prefill.sizes);
  EXPECT_EQ(found.decode.sizes, real.decode.sizes);
  for (size_t i = 0; i < found.prefill.us.size(); ++i) {
    EXPECT_NEAR(found.prefill.us[i], real.prefill.us[i], 0.1) << i;
  }
  for (size_t i = 0; i < found.decode.us.size(); ++i) {
    EXPECT_NEAR(found.decode.us[i], real.decode.us[i], 0.1) << i;
  }
  EXPECT_EQ(found.decode_positions, 11);
  EXPECT_NEAR(found.decode_position_ns, 300, 1);
  EXPECT_NEAR(found.prefill_position_ns, 20, 0.2);
  EXPECT_EQ(progress.front(), "prefill of 1");
  EXPECT_EQ(progress.back(), "prefill of 480, and decode after it") << "ten whole steps";
}

TEST(Profile, PositionsThatCostNothingAreFoundToo) {
  const StepMeasurements real{.prefill = {.sizes = {1, 2, 48}, .us = {100, 100, 100}},
                              .decode = {.sizes = {1, 6}, .us = {100, 150}}};
  const StepMeasurements found = Profile(
      Engine(), real, {.server = {}, .context = 500, .decode = 5, .repetitions = 1}, nullptr);
  EXPECT_EQ(found.decode_position_ns, 0);
  EXPECT_NEAR(found.prefill_position_ns, 0, 0.1);
}

TEST(Profile, PositionsOfPromptsThatAreAlwaysWhole) {
  EngineConfig engine = Engine();
  engine.scheduler.max_num_batched_tokens = 2000;
  engine.scheduler.chunked_prefill_size = 2000;
  // 400 us for products of 800 tokens, and as much for their 320,400 positions.
  const StepMeasurements real{.prefill = {.sizes = {1, 2, 800}, .us = {10, 10.5, 400 + 400.5}},
                              .decode = {.sizes = {1, 2, 4, 6}, .us = {10, 20, 40, 60}},
                              .decode_positions = 11,
                              .prefill_position_ns = 1.25};
  const StepMeasurements found = Profile(
      engine, real, {.server = {}, .context = 4096, .decode = 5, .repetitions = 1}, nullptr);
  EXPECT_NEAR(found.prefill_position_ns, 1.25, 0.1);
}

TEST(Profile, ChunksShorterThanThePromptsOfABatch) {
  EngineConfig engine = Engine();
  engine.scheduler.chunked_prefill_size = 4;
  const StepMeasurements real{.prefill = {.sizes = {1, 4}, .us = {100, 130}},
                              .decode = {.sizes = {1, 6}, .us = {100, 150}}};
  const StepMeasurements found =
      Profile(engine, real, {.server = {}, .context = 50, .decode = 5, .repetitions = 1}, nullptr);
  EXPECT_EQ(found.prefill.sizes, (std::vector<uint32_t>{1, 2, 4}));
  EXPECT_NEAR(found.decode.us.back(), 150, 0.1);
}

TEST(ProfileSizes, FitIntoTheServer) {
  const ProfileOptions options{.server = {}, .context = 4096, .decode = 32, .repetitions = 1};
  EngineConfig engine = Engine();
  auto sizes = ProfileSizes::Of(engine, 1000, options);
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_EQ(sizes->prefill, (std::vector<uint32_t>{1, 2, 4, 8, 16, 32, 48}));
  EXPECT_EQ(sizes->decode, (std::vector<uint32_t>{1, 2, 4, 6}));
  EXPECT_EQ(sizes->decode_context, 8u);
  EXPECT_EQ(sizes->long_context, 960u) << "of 967: twenty whole steps";

  engine.kv_cache.groups[0].num_blocks = 9;  // of 16 tokens; a sequence of 41 takes 3
  sizes = ProfileSizes::Of(engine, 9 * 16, options);
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_EQ(sizes->decode, (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_EQ(sizes->several_prompts, 4u);
  engine.kv_cache.groups[0].num_blocks = 3;
  sizes = ProfileSizes::Of(engine, 3 * 16, options);
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_EQ(sizes->several_prompts, 1u);

  engine = Engine();
  engine.scheduler.max_num_seqs = 33;
  sizes = ProfileSizes::Of(engine, 1000, options);
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_EQ(sizes->decode, (std::vector<uint32_t>{1, 2, 4, 8, 16, 33})) << "32 is too near";
  engine.kv_cache.groups[0].num_blocks = 9;

  engine.scheduler.max_num_seqs = 48;
  sizes = ProfileSizes::Of(engine, 9 * 16, options);
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_EQ(sizes->decode_context, 1u) << "all prompts are one step";

  EXPECT_EQ(ProfileSizes::Of(engine, 33, options).status().message(),
            "--decode 32 needs 34 tokens of a sequence, the server has room for 33");
}

}  // namespace
}  // namespace tandem::client
