// The engine thread's time per decode step by the number of running sequences, and per step of
// prompts that share nothing, behind a real shared-memory ring whose other end answers at once:
// contexts of 8192 tokens and more, prompts of 512, blocks of 16. Wall time per phase without the
// wait for the answer, and the thread's processor time with it (cpu_us): on a busy machine the
// second is the one to read.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/coordinator/engine/channel_worker.h"
#include "tests/coordinator/engine/engine_fixture.h"

namespace tandem::coordinator {
namespace {

constexpr uint32_t kPrompt = 8192;
constexpr uint32_t kSteps = 400;
constexpr uint32_t kGenerate = kSteps + 300;  // admission takes a step per prompt

// Takes everything and keeps nothing.
class SilentStream : public TokenStream {
 public:
  Taken OnUpdate(StreamUpdate update) override {
    benchmark::DoNotOptimize(update);
    return {};
  }
  void Flush() override {}
};

struct BenchEngine {
  std::unique_ptr<EngineCore> core;
  ChannelWorker* worker = nullptr;
};

BenchEngine Make(uint32_t num_seqs, uint32_t max_prefill = kPrompt, bool prefix_cache = true) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.ranks = 1;
  engine.config.scheduler.max_num_seqs = num_seqs;
  engine.config.scheduler.max_num_batched_tokens = max_prefill + num_seqs;
  engine.config.scheduler.chunked_prefill_size = kPrompt;
  engine.config.scheduler.max_model_len = kPrompt + kGenerate;
  engine.config.kv_cache = {
      .block_size = 16,
      .enable_prefix_cache = prefix_cache,
      .groups = {{.num_blocks = num_seqs * ((kPrompt + kGenerate) / 16 + 1), .window_tokens = 0}}};
  auto worker = std::make_unique<ChannelWorker>(0, engine.config.vocab_size,
                                                std::vector<uint32_t>{0}, engine.NumBlocks());
  BenchEngine bench{.core = nullptr, .worker = worker.get()};
  std::vector<std::unique_ptr<WorkerClient>> workers;
  workers.push_back(std::move(worker));
  bench.core = engine.MakeOn(std::move(workers));
  return bench;
}

int64_t ThreadNanos() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

double Median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<long>(values.size() / 2));
  return values[values.size() / 2];
}

// The time of each phase, step by step.
struct Phases {
  void Add(const EngineStepTimings& before, const EngineStepTimings& after, int64_t cpu_ns) {
    const auto put = [](std::vector<double>& to, int64_t ns) {
      to.push_back(static_cast<double>(ns) * 1e-3);
    };
    put(schedule, after.schedule_ns - before.schedule_ns);
    put(build, after.build_ns - before.build_ns);
    put(submit, after.submit_ns - before.submit_ns);
    put(apply, after.apply_ns - before.apply_ns);
    put(deliver, after.deliver_ns - before.deliver_ns);
    put(all, after.coordinator_ns() - before.coordinator_ns());
    put(cpu, cpu_ns);
  }

  void Report(benchmark::State& state) const {
    state.counters["schedule_us"] = Median(schedule);
    state.counters["build_us"] = Median(build);
    state.counters["serialize_send_us"] = Median(submit);
    state.counters["apply_us"] = Median(apply);
    state.counters["deliver_us"] = Median(deliver);
    state.counters["median_us"] = Median(all);
    state.counters["cpu_us"] = Median(cpu);
  }

  std::vector<double> schedule, build, submit, apply, deliver, all, cpu;
};

void BM_DecodeStep(benchmark::State& state) {
  const auto num_seqs = static_cast<uint32_t>(state.range(0));
  BenchEngine bench = Make(num_seqs);
  EngineCore& core = *bench.core;
  for (uint64_t handle = 1; handle <= num_seqs; ++handle) {
    core.Add(
        MakeRequest(std::to_string(handle), kPrompt, kGenerate, std::make_shared<SilentStream>()),
        handle);
  }
  while (core.Stats().waiting > 0) core.Step().IgnoreError();
  core.Step().IgnoreError();  // the last prefill
  Phases phases;
  for (auto _ : state) {
    const EngineStepTimings before = core.timings();
    const int64_t begin = ThreadNanos();
    const absl::Status status = core.Step();
    phases.Add(before, core.timings(), ThreadNanos() - begin);
    if (!status.ok() || core.Stats().running < num_seqs) {
      state.SkipWithError(status.ok() ? "a sequence ended" : std::string(status.message()).c_str());
      break;
    }
    state.SetIterationTime(phases.all.back() * 1e-6);
  }
  phases.Report(state);
  state.counters["frame_bytes"] = static_cast<double>(bench.worker->last_frame());
  core.EndAll(absl::OkStatus(), FinishReason::kCancelled);
}

// Each step admits so many prompts, and ends those of the one before; with a prefix cache, in which
// nothing hits, or without.
void BM_PrefillStep(benchmark::State& state) {
  const auto num_prompts = static_cast<uint32_t>(state.range(0));
  constexpr uint32_t kShort = 512;
  BenchEngine bench = Make(2 * num_prompts, num_prompts * kShort, state.range(1) != 0);
  EngineCore& core = *bench.core;
  uint64_t handle = 0;
  Phases phases;
  for (auto _ : state) {
    for (uint32_t i = 0; i < num_prompts; ++i) {
      ++handle;
      core.Add(MakeRequest(std::to_string(handle), kShort, 1, std::make_shared<SilentStream>()),
               handle);
    }
    const EngineStepTimings before = core.timings();
    const int64_t begin = ThreadNanos();
    const absl::Status status = core.Step();
    phases.Add(before, core.timings(), ThreadNanos() - begin);
    if (!status.ok() || core.Stats().waiting > 0) {
      state.SkipWithError(status.ok() ? "a prompt waits" : std::string(status.message()).c_str());
      break;
    }
    state.SetIterationTime(phases.all.back() * 1e-6);
  }
  phases.Report(state);
  core.EndAll(absl::OkStatus(), FinishReason::kCancelled);
}

BENCHMARK(BM_DecodeStep)
    ->Arg(1)
    ->Arg(64)
    ->Arg(256)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(kSteps);
BENCHMARK(BM_PrefillStep)
    ->ArgNames({"prompts", "prefix_cache"})
    ->ArgsProduct({{1, 16}, {0, 1}})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(kSteps);

}  // namespace
}  // namespace tandem::coordinator
