// What a step costs before any mathematics: encode, decode and validate. Run: bazel run -c opt
// //tests/common/step:step_bench
#include <vector>

#include "benchmark/benchmark.h"
#include "common/step/codec.h"
#include "tests/common/step/example_step.h"

namespace tandem::step {
namespace {

constexpr uint32_t kContext = 4096;
constexpr uint32_t kBlockSize = 16;

void BM_Encode(benchmark::State& state) {
  const StepDescriptor step = LargeStep(state.range(0), kContext, kBlockSize);
  std::vector<uint8_t> frame;
  for (auto _ : state) Encode(step, frame);
  state.SetBytesProcessed(state.iterations() * frame.size());
}

void BM_Decode(benchmark::State& state) {
  std::vector<uint8_t> frame;
  Encode(LargeStep(state.range(0), kContext, kBlockSize), frame);
  for (auto _ : state) benchmark::DoNotOptimize(DecodeDescriptor(frame));
  state.SetBytesProcessed(state.iterations() * frame.size());
}

void BM_Validate(benchmark::State& state) {
  const StepDescriptor step = LargeStep(state.range(0), kContext, kBlockSize);
  const StepLimits limits = LargeLimits(step, kBlockSize);
  for (auto _ : state) {
    if (!Validate(step, limits).ok()) state.SkipWithError("invalid");
  }
}

BENCHMARK(BM_Encode)->Arg(1)->Arg(64)->Arg(256);
BENCHMARK(BM_Decode)->Arg(1)->Arg(64)->Arg(256);
BENCHMARK(BM_Validate)->Arg(1)->Arg(64)->Arg(256);

}  // namespace
}  // namespace tandem::step

BENCHMARK_MAIN();
