// Sweeps, with runs as on a server, of a simulated one whose capacity can be told beforehand: four
// requests at once, and every step takes 20 ms.
#include "tests/load/session.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "tests/load/simulated_run.h"

namespace tandem::load {
namespace {

constexpr double kStepS = 0.02;
constexpr uint32_t kSequences = 4;

SimulatedServer Server() {
  SimulatedServer server;
  coordinator::SchedulerConfig& scheduler = server.engine.scheduler;
  scheduler.max_num_seqs = kSequences;
  scheduler.max_num_batched_tokens = 512;
  scheduler.chunked_prefill_size = 512;
  scheduler.max_model_len = 10'000;
  server.engine.kv_cache.block_size = 16;
  server.engine.kv_cache.groups = {{.num_blocks = 10'000}};
  server.engine.kv_cache.prefix_hash_key = 1;
  server.engine.vocab_size = 1000;
  server.engine.pipeline_depth = 1;
  server.engine.max_queued_requests = 100'000;
  server.engine.max_queued_tokens = 100'000'000;
  server.steps = {.prefill = {.sizes = {1}, .us = {1e6 * kStepS}},
                  .decode = {.sizes = {1}, .us = {1e6 * kStepS}}};
  return server;
}

class SimulatedServerTarget final : public Target {
 public:
  absl::StatusOr<ModelFacts> Model() override {
    return ModelFacts{.name = "m", .vocab_size = 1000, .special_ids = {}};
  }
  absl::StatusOr<uint32_t> CountTokens(const std::string&) override { return 1; }
  absl::StatusOr<RunRecord> Run(const std::vector<LoadRequest>& requests,
                                const RunSettings& settings) override {
    return SimulatedRun(server_, requests, settings, 0, std::chrono::seconds(10)).Run();
  }
  void Stop() override {}

 private:
  const SimulatedServer server_ = Server();
};

LoadOptions Options(uint32_t output_tokens, double ratio, uint64_t seed) {
  LoadOptions options;
  options.sweep = true;
  options.ignore_eos = true;
  options.timeout = std::chrono::hours(100);
  options.dataset.random_input_len = 16;
  options.dataset.random_output_len = output_tokens;
  options.dataset.random_range_ratio = ratio;
  options.dataset.seed = seed;
  return options;
}

// The rate that a sweep finds, divided by the server's capacity; 0 if none is found.
double Found(const LoadOptions& options, double tokens_per_request) {
  SimulatedServerTarget target;
  std::ostringstream out;
  const absl::Status status = Session(options, target, "", out).Run();
  EXPECT_TRUE(status.ok()) << status;
  const std::string text = out.str();
  const std::string kept_up = "the server kept up with ";
  const size_t at = text.find(kept_up);
  if (at == text.npos) return 0;
  const double capacity = kSequences / kStepS / tokens_per_request;
  return std::strtod(text.c_str() + at + kept_up.size(), nullptr) / capacity;
}

TEST(SweepTest, FindsTheCapacityWhateverTheLengthsOfAnswers) {
  for (const uint64_t seed : {1, 2, 3}) {
    for (const double ratio : {0.0, 0.9}) {
      for (const uint32_t length : {50, 500}) {
        const double found = Found(Options(length, ratio, seed), length);
        EXPECT_NEAR(found, 1, 0.15) << length << " tokens, ratio " << ratio << ", seed " << seed;
      }
    }
  }
}

TEST(SweepTest, FindsTheCapacityForClientsThatHangUp) {
  LoadOptions options = Options(100, 0, 1);
  options.cancel_fraction = 0.5;
  // After half of the answer on average.
  EXPECT_NEAR(Found(options, 75), 1, 0.15);
  options.cancel_fraction = 1;
  EXPECT_NEAR(Found(options, 50), 1, 0.15);
}

TEST(SweepTest, SlowReadersDoNotMissObjectives) {
  LoadOptions options = Options(100, 0, 1);
  options.slow_fraction = 0.3;
  options.goodput = {"ttft:2000"};
  const double found = Found(options, 100);
  EXPECT_GT(found, 0.6);
  EXPECT_LT(found, 1.15);
}

TEST(SweepTest, ObjectivesThatNoRequestHasAreAnError) {
  LoadOptions options = Options(100, 0, 1);
  options.slow_fraction = 1;
  options.goodput = {"ttft:2000"};
  SimulatedServerTarget target;
  std::ostringstream out;
  const absl::Status status = Session(options, target, "", out).Run();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_TRUE(std::string(status.message()).starts_with("--goodput: ")) << status;
}

}  // namespace
}  // namespace tandem::load
