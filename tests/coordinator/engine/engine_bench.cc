// The coordinator's own time per decode step (schedule, build, encode and send, apply) by the
// number of running sequences, on simulated workers whose time does not count. Contexts of 768
// tokens and more: about 50 blocks of 16 per sequence.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "tests/coordinator/engine/engine_fixture.h"

namespace tandem::coordinator {
namespace {

constexpr uint32_t kPrompt = 768;
constexpr uint32_t kGenerate = 512;

// Hears everything and keeps nothing.
class SilentStream : public TokenStream {
 public:
  void OnPromptLogprobs(std::vector<TokenLogprobs>) override {}
  bool OnToken(const GeneratedToken& token, FinishReason, const Usage&) override {
    benchmark::DoNotOptimize(token);
    return true;
  }
  void OnEnd(const absl::Status&, FinishReason, const Usage&) override {}
};

SimulatedEngine BenchEngine(uint32_t num_seqs) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.ranks = 1;
  engine.config.scheduler.max_num_seqs = num_seqs;
  engine.config.scheduler.max_num_batched_tokens = std::max(num_seqs, 4096u);
  engine.config.scheduler.chunked_prefill_size = 4096;
  engine.config.scheduler.max_model_len = kPrompt + kGenerate;
  engine.config.kv_cache = {
      .block_size = 16,
      .enable_prefix_cache = true,
      .groups = {{.num_blocks = num_seqs * (kPrompt + kGenerate) / 16 + 1, .window_tokens = 0}}};
  return engine;
}

void AddAll(EngineCore& core, uint32_t num_seqs, uint64_t& arrival) {
  for (uint32_t i = 0; i < num_seqs; ++i) {
    const std::string id = std::to_string(++arrival);
    core.Add(MakeRequest(id, kPrompt, kGenerate, std::make_shared<SilentStream>()), arrival);
  }
  while (core.Stats().waiting > 0) core.Step().IgnoreError();
}

void BM_DecodeStep(benchmark::State& state) {
  const auto num_seqs = static_cast<uint32_t>(state.range(0));
  auto core = BenchEngine(num_seqs).Make();
  uint64_t arrival = 0;
  AddAll(*core, num_seqs, arrival);
  core->Step().IgnoreError();  // the last prefill
  EngineStepTimings total;
  for (auto _ : state) {
    if (core->Stats().running < num_seqs) {
      core->EndAll(absl::OkStatus(), FinishReason::kCancelled);
      AddAll(*core, num_seqs, arrival);
      core->Step().IgnoreError();
    }
    const EngineStepTimings before = core->timings();
    if (absl::Status status = core->Step(); !status.ok()) {
      state.SkipWithError(std::string(status.message()).c_str());
      break;
    }
    const EngineStepTimings& after = core->timings();
    state.SetIterationTime(static_cast<double>(after.coordinator_ns() - before.coordinator_ns()) *
                           1e-9);
    total.schedule_ns += after.schedule_ns - before.schedule_ns;
    total.build_ns += after.build_ns - before.build_ns;
    total.submit_ns += after.submit_ns - before.submit_ns;
    total.apply_ns += after.apply_ns - before.apply_ns;
  }
  const auto per_step_us = [&](int64_t ns) {
    return benchmark::Counter(static_cast<double>(ns) * 1e-3, benchmark::Counter::kAvgIterations);
  };
  state.counters["schedule_us"] = per_step_us(total.schedule_ns);
  state.counters["build_us"] = per_step_us(total.build_ns);
  state.counters["encode_send_us"] = per_step_us(total.submit_ns);
  state.counters["apply_us"] = per_step_us(total.apply_ns);
  core->EndAll(absl::OkStatus(), FinishReason::kCancelled);
}

BENCHMARK(BM_DecodeStep)
    ->Arg(1)
    ->Arg(64)
    ->Arg(256)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(200);

}  // namespace
}  // namespace tandem::coordinator
