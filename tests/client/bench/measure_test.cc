// The benchmark over simulated workers: what it counts, and what it asks of the engine.
#include "client/bench/measure.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/bench/bench_options.h"
#include "client/bench/bench_report.h"
#include "client/json_forms.h"
#include "common/step/limits.h"
#include "tests/coordinator/cluster/simulated_worker.h"

namespace tandem::client {
namespace {

using coordinator::EngineCore;

// Every reading is one second after the last.
class TickingClock : public SimulatedClock {
 public:
  TimePoint Now() const override { return now_ += std::chrono::seconds(1); }

 private:
  mutable TimePoint now_;
};

// An engine with the limits that FitLimits asks for, over two simulated workers.
std::unique_ptr<EngineCore> MakeEngine(const BenchOptions& options,
                                       const std::vector<coordinator::SimulatedScript>& scripts) {
  const config::WorkerConfig& worker = options.server.worker;
  coordinator::EngineConfig config;
  config.scheduler.max_num_seqs = worker.limits.max_num_seqs;
  config.scheduler.max_num_batched_tokens = worker.limits.max_num_batched_tokens;
  config.scheduler.chunked_prefill_size = worker.limits.max_num_batched_tokens;
  config.scheduler.max_model_len = worker.model.spec.max_model_len;
  config.kv_cache.block_size = worker.cache.block_size;
  config.kv_cache.enable_prefix_cache = options.server.scheduling.enable_prefix_caching;
  config.kv_cache.groups = {{.num_blocks = worker.cache.num_kv_blocks, .window_tokens = 0}};
  config.vocab_size = 97;
  if (options.server.scheduling.speculation == config::Speculation::kNgram) {
    config.max_draft_tokens = options.server.scheduling.max_draft_tokens;
    config.scheduler.max_draft_rows = step::kMaxDraftRows;
  }
  coordinator::WorkerGroup group(coordinator::MakeSimulatedWorkers(
      2, coordinator::SimulatedModel(), {worker.cache.num_kv_blocks}, scripts));
  std::vector<config::WorkerAssignment> ranks(2);
  for (int rank = 0; rank < 2; ++rank) {
    ranks[rank] = {.epoch = config.epoch, .rank = rank, .size = 2};
  }
  const auto blocks = group.Bring(worker, ranks, Deadline::After(std::chrono::seconds(60)));
  EXPECT_TRUE(blocks.ok()) << blocks.status();
  return std::make_unique<EngineCore>(config, std::move(group));
}

BenchOptions Options(uint32_t prefill, uint32_t decode, std::vector<uint32_t> batches) {
  BenchOptions options;
  options.prefill = prefill;
  options.decode = decode;
  options.batches = std::move(batches);
  const absl::Status status = FitLimits(/*context_length=*/4096, options);
  EXPECT_TRUE(status.ok()) << status;
  return options;
}

TEST(Measure, PrefillIsOneStepPerRepetition) {
  const BenchOptions options = Options(100, 4, {2});
  auto engine = MakeEngine(options, {});
  const TickingClock clock;
  Measure measure(*engine, 1, options.context, clock);
  const auto result = measure.Prefill(100, 3);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->tokens_per_second, 100);  // a second on this clock
  EXPECT_EQ(result->timings.steps, 3);
  EXPECT_EQ(engine->timings().steps, 4);  // and the warm-up
  EXPECT_TRUE(engine->idle());
  EXPECT_EQ(engine->Stats().free_blocks, engine->Stats().total_blocks);
}

TEST(Measure, DecodeCountsOnlyStepsThatOnlyDecode) {
  const BenchOptions options = Options(10, 6, {1, 5});
  auto engine = MakeEngine(options, {});
  const TickingClock clock;
  Measure measure(*engine, 1, options.context, clock);
  const auto result = measure.Decode(5, 6, 2);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->tokens_per_second, 5 * 6);
  EXPECT_EQ(result->timings.steps, 2 * 6);
  EXPECT_EQ(engine->timings().steps, (1 + 4) + 2 * (1 + 6));
  EXPECT_EQ(engine->Stats().preemptions, 0);
  EXPECT_TRUE(engine->idle());
}

TEST(Measure, SequencesDecodeAfterTheirContext) {
  BenchOptions options;
  options.prefill = 0;
  options.decode = 4;
  options.batches = {3};
  options.context = 1000;
  ASSERT_TRUE(FitLimits(/*context_length=*/4096, options).ok());
  EXPECT_EQ(options.server.worker.limits.max_num_batched_tokens, 3000u);
  auto engine = MakeEngine(options, {});
  Measure measure(*engine, 1, options.context);
  const auto result = measure.Decode(3, 4, 2);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(engine->timings().steps, 3 * (1 + 4)) << "all prompts are one step";
  EXPECT_EQ(engine->Stats().preemptions, 0);
}

TEST(Measure, EverySizeFitsWithoutPreemption) {
  for (const uint32_t block_size : {1u, 7u, 16u, 256u}) {
    BenchOptions options;
    options.server.worker.cache.block_size = block_size;
    options.prefill = 33;
    options.decode = 40;
    options.batches = {1, 3, 9};
    ASSERT_TRUE(FitLimits(4096, options).ok());
    auto engine = MakeEngine(options, {});
    Measure measure(*engine, 1, options.context);
    EXPECT_TRUE(measure.Prefill(33, 1).ok());
    for (const uint32_t batch : options.batches) {
      const auto result = measure.Decode(batch, 40, 1);
      EXPECT_TRUE(result.ok()) << result.status();
    }
    EXPECT_EQ(engine->Stats().preemptions, 0);
  }
}

// The number of steps of `batch` sequences of 200 tokens, with guesses and without, and how it
// went.
struct DraftsRun {
  int64_t steps = 0;
  DraftMeasurement measured;
};

DraftsRun RunDrafts(uint32_t batch, double acceptance, uint32_t repetitions) {
  BenchOptions options;
  options.server.scheduling.speculation = config::Speculation::kNgram;
  options.draft_acceptance = {80};
  options.prefill = 0;
  options.decode = 200;
  options.batches = {1, 2, 8};
  EXPECT_TRUE(FitLimits(4096, options).ok());
  auto engine = MakeEngine(options, {});
  const TickingClock clock;
  Measure measure(*engine, 1, options.context, clock);
  const auto result = measure.Drafts(batch, 200, acceptance, repetitions);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(engine->idle());
  EXPECT_EQ(engine->Stats().preemptions, 0);
  return {engine->timings().steps, result.value_or(DraftMeasurement())};
}

TEST(Measure, GuessesThatAreRightSaveSteps) {
  const DraftsRun right = RunDrafts(1, 1, 2);
  EXPECT_EQ(right.measured.accepted, right.measured.drafts);
  EXPECT_EQ(right.measured.tokens_per_second, 200) << "a second on this clock";
  EXPECT_EQ(right.measured.ratio, 1) << "another one";
  // With 7 of 8 tokens guessed, but for the first ones, which show that it pays.
  EXPECT_GT(right.measured.drafts, 2 * 160);
  EXPECT_EQ(right.steps, (1 + 4) + 2 * (201 + 201) - right.measured.accepted);

  const DraftsRun mostly = RunDrafts(1, 0.8, 2);
  EXPECT_GT(mostly.measured.accepted, 2 * 100);
  EXPECT_LT(mostly.measured.accepted, mostly.measured.drafts * 8 / 10);
  EXPECT_GT(mostly.steps, right.steps);
}

TEST(Measure, GuessesThatAreWrongAreNotComputed) {
  const DraftsRun wrong = RunDrafts(1, 0, 1);
  EXPECT_EQ(wrong.measured.drafts, 0);
  EXPECT_EQ(wrong.steps, (1 + 4) + (201 + 201));
}

TEST(Measure, NothingIsGuessedForManyAtOnce) {
  EXPECT_GT(RunDrafts(2, 1, 1).measured.drafts, 100);
  EXPECT_EQ(RunDrafts(8, 1, 1).measured.drafts, 0);
}

TEST(Measure, ALostWorkerIsAnError) {
  const BenchOptions options = Options(10, 6, {2});
  coordinator::SimulatedScript dies;
  dies.faults[4] = coordinator::SimulatedFault::kDie;
  auto engine = MakeEngine(options, {{}, dies});
  Measure measure(*engine, 1, options.context);
  const absl::Status status = measure.Decode(2, 6, 1).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(std::string(status.message()).find("rank 1"), std::string::npos) << status;
}

TEST(BenchOptions, TakesJustTheMemoryThatItNeeds) {
  const BenchOptions options = Options(512, 32, {1, 32});
  EXPECT_EQ(options.server.worker.model.spec.max_model_len, 513u);
  EXPECT_EQ(options.server.worker.limits.max_num_seqs, 32u);
  EXPECT_EQ(options.server.worker.limits.max_num_batched_tokens, 512u);
  EXPECT_EQ(options.server.worker.cache.num_kv_blocks, 32u * 3);  // 41 tokens in blocks of 16
  EXPECT_FALSE(options.server.scheduling.enable_prefix_caching);
}

// The scheduler wants them free, beside those that the sequences need.
TEST(BenchOptions, GuessesNeedBlocks) {
  BenchOptions options;
  options.server.scheduling.speculation = config::Speculation::kDraft;
  options.prefill = 0;
  options.decode = 32;
  options.batches = {2, 4};
  ASSERT_TRUE(FitLimits(/*context_length=*/4096, options).ok());
  EXPECT_EQ(options.server.worker.cache.num_kv_blocks, 4u * 3 + 4 + 8);
}

TEST(BenchOptions, RefuseWhatMakesNoSense) {
  const auto fit = [](uint32_t prefill, uint32_t decode, std::vector<uint32_t> batches,
                      uint32_t repetitions = 1) {
    BenchOptions options;
    options.prefill = prefill;
    options.decode = decode;
    options.batches = std::move(batches);
    options.repetitions = repetitions;
    const absl::Status checked = CheckOptions(options);
    return checked.ok() ? FitLimits(/*context_length=*/128, options) : checked;
  };
  EXPECT_TRUE(fit(127, 119, {1}).ok());
  for (const absl::Status& status :
       {fit(128, 4, {1}), fit(4, 120, {1}), fit(0, 0, {1}), fit(0, 4, {}), fit(4, 4, {0}),
        fit(4, 4, {100000}), fit(4, 4, {1}, 0), fit(~0u, 4, {1})}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status) || absl::IsOutOfRange(status)) << status;
  }
}

TEST(BenchOptions, RefuseContextsThatAreTooLong) {
  BenchOptions options;
  options.prefill = 0;
  options.decode = 27;
  options.context = 100;
  EXPECT_TRUE(FitLimits(128, options).ok());
  EXPECT_EQ(FitLimits(127, options).message(),
            "--context with --decode needs a context of 128 tokens, the model has 127");
  options.batches = {4096};
  options.context = 1000;
  EXPECT_EQ(FitLimits(4096, options).message(),
            "--batch 4096 with --context 1000 needs a step of 4096000 tokens, at most 1048576");
}

TEST(BenchOptions, AcceptanceIsOfGuessesOfTheServers) {
  BenchOptions options;
  options.draft_acceptance = {0, 100};
  options.server.scheduling.speculation = config::Speculation::kNgram;
  EXPECT_TRUE(CheckOptions(options).ok()) << CheckOptions(options);
  options.draft_acceptance = {101};
  EXPECT_TRUE(absl::IsOutOfRange(CheckOptions(options))) << CheckOptions(options);
  options.draft_acceptance = {100};
  options.server.scheduling.speculation = config::Speculation::kOff;
  const absl::Status status = CheckOptions(options);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(std::string(status.message()).find("it is off"), std::string::npos) << status;
}

TEST(BenchOptions, AcceptanceIsOnlyKnownWhereGuessesChangeNoAnswer) {
  BenchOptions options;
  options.draft_acceptance = {80};
  options.server.scheduling.speculation = config::Speculation::kNgram;
  options.server.worker.device.device = config::Device::kCuda;
  const absl::Status status = CheckOptions(options);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(std::string(status.message()).find("it is cuda"), std::string::npos) << status;
  options.draft_acceptance = {};
  EXPECT_TRUE(CheckOptions(options).ok()) << CheckOptions(options);
}

TEST(BenchReport, JsonHasTheSpeedsByBatchAndTheSetUp) {
  BenchReport report;
  report.options = Options(64, 8, {1, 4});
  report.options.server.worker.model.path = "m.gguf";
  report.threads_per_worker = 2;
  report.prefill = Measurement{.tokens_per_second = 230.5,
                               .timings = {.steps = 2, .wait_ns = 6000, .idle_ns = 1000}};
  report.decode.push_back({1, {.tokens_per_second = 50, .timings = {}}});
  report.decode.push_back(
      {4, {.tokens_per_second = 120, .timings = {.steps = 1, .apply_ns = 500}}});
  const auto json = nlohmann::json::parse(ToJson(report));
  EXPECT_EQ(json["prefill_tokens_per_second"], 230.5);
  EXPECT_EQ(json["decode_tokens_per_second"], nlohmann::json({{"1", 50.0}, {"4", 120.0}}));
  EXPECT_EQ(json["threads_per_worker"], 2);
  EXPECT_EQ(json["tensor_parallel_size"], 1);
  EXPECT_EQ(json["cpu_kernels"], "auto");
  EXPECT_EQ(json["coordinator_us_per_step"]["prefill"]["wait"], 3.0);
  EXPECT_EQ(json["coordinator_us_per_step"]["prefill"]["rank_0_idle"], 0.5);
  EXPECT_EQ(json["coordinator_us_per_step"]["decode"]["4"]["total"], 0.5);
  report.drafts = {
      {.batch = 1,
       .acceptance = 80,
       .measured = {.ratio = 1.5, .tokens_per_second = 75, .drafts = 9, .accepted = 6}}};
  EXPECT_EQ(nlohmann::json::parse(ToJson(report))["drafts"][0]["ratio"], 1.5);
  const std::string text = FormatReport(report);
  EXPECT_NE(text.find("230.50 tokens/s"), std::string::npos) << text;
  EXPECT_NE(text.find("80% right x1"), std::string::npos) << text;
  EXPECT_NE(text.find("6 of 9 computed ones accepted in all repetitions"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace tandem::client
