// What a decode step costs before any mathematics: serialize, parse, validate and apply to the
// block tables. One sequence in 16 gets a block. Run: bazel run -c opt
// //tests/common/step:step_bench
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/step/codec.h"
#include "tests/common/step/example_step.h"

namespace tandem::step {
namespace {

constexpr uint32_t kContext = 8192;
constexpr uint32_t kBlockSize = 16;
constexpr uint32_t kLength = kContext / kBlockSize;

// Everything but the blocks, and those.
StepDescriptor DecodeStep(uint32_t seqs) {
  StepDescriptor step = LargeStep(seqs, kContext, kBlockSize, kLength);
  for (uint32_t s = 0; s < seqs; s += 16) {
    step.groups[0].tables[s].length_before = kLength - 1;
    step.groups[0].blocks.push_back(static_cast<BlockId>(s * kLength + kLength - 1));
  }
  return step;
}

void BM_Serialize(benchmark::State& state) {
  const StepDescriptor step = DecodeStep(state.range(0));
  std::vector<uint8_t> frame;
  for (auto _ : state) Serialize(step, frame);
  state.counters["frame_bytes"] = static_cast<double>(frame.size());
  state.SetBytesProcessed(state.iterations() * frame.size());
}

void BM_Parse(benchmark::State& state) {
  std::vector<uint8_t> frame;
  Serialize(DecodeStep(state.range(0)), frame);
  for (auto _ : state) benchmark::DoNotOptimize(ParseDescriptor(frame));
  state.SetBytesProcessed(state.iterations() * frame.size());
}

void BM_Validate(benchmark::State& state) {
  const StepDescriptor step = DecodeStep(state.range(0));
  const StepLimits limits = LargeLimits(step, kBlockSize);
  // Tables as the step before left them.
  StepDescriptor before = LargeStep(state.range(0), kContext, kBlockSize);
  for (uint32_t s = 0; s < step.sequences.size(); ++s) {
    before.groups[0].tables[s].length_after = step.groups[0].tables[s].length_before;
  }
  std::vector<BlockId> blocks;
  for (uint32_t s = 0; s < step.sequences.size(); ++s) {
    for (uint32_t b = 0; b < step.groups[0].tables[s].length_before; ++b) {
      blocks.push_back(static_cast<BlockId>(s * kLength + b));
    }
  }
  before.groups[0].blocks = std::move(blocks);
  BlockTables tables(limits);
  tables.Apply(before);
  for (auto _ : state) {
    if (!Validate(step, limits, tables).ok()) state.SkipWithError("invalid");
  }
}

BENCHMARK(BM_Serialize)->Arg(1)->Arg(64)->Arg(256);
BENCHMARK(BM_Parse)->Arg(1)->Arg(64)->Arg(256);
BENCHMARK(BM_Validate)->Arg(1)->Arg(64)->Arg(256);

}  // namespace
}  // namespace tandem::step

BENCHMARK_MAIN();
