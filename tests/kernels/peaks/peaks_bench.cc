// The peaks of this machine that kernels are compared with: reading memory, and the arithmetic of
// each instruction set that it has. `./dev bench cpu` runs it beside the kernels.
//
//   bazel run //tests/kernels/peaks:peaks_bench -- --threads=2 --benchmark_repetitions=5
//
// Without --threads one per core. OPS of Peak counts 2 for a product and its addition. The best
// repetition counts.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <span>
#include <string>
#include <thread>

#include "kernels/cpu/isa.h"
#include "tests/kernels/peaks/memory_reading.h"
#include "tests/kernels/peaks/mix.h"
#include "tests/kernels/peaks/threads_flag.h"

namespace tandem::kernels::peaks {
namespace {

constexpr int64_t kRounds = 10000;  // of an iteration

void RunMix(benchmark::State& state, const Mix& mix) {
  for (auto _ : state) benchmark::DoNotOptimize(mix.run(kRounds));
  state.counters["OPS"] =
      benchmark::Counter(static_cast<double>(state.iterations() * kRounds) * mix.ops_per_round,
                         benchmark::Counter::kIsRate);
}

void Register(const std::string& isa, std::span<const Mix> mixes, int threads) {
  for (const Mix& mix : mixes) {
    benchmark::RegisterBenchmark(("Peak/" + isa + "/" + mix.name).c_str(),
                                 [&mix](benchmark::State& state) { RunMix(state, mix); })
        ->Threads(threads)
        ->UseRealTime();
  }
}

// Instruction sets have the names of kernels::cpu::MatMulKernels.
void RegisterAll(int threads) {
  RegisterReadMemory(threads);
  __builtin_cpu_init();
  if (cpu::MissingInstructions(cpu::Isa::kAvx2).empty()) Register("avx2", avx2::Mixes(), threads);
  if (cpu::MissingInstructions(cpu::Isa::kAvx2Vnni).empty()) {
    Register("avx2-vnni", avx2_vnni::Mixes(), threads);
  }
  if (cpu::MissingInstructions(cpu::Isa::kAvx512).empty()) {
    Register("avx512", avx512::Mixes(), threads);
    if (__builtin_cpu_supports("avx512vnni")) {
      Register("avx512-vnni", avx512_vnni::Mixes(), threads);
    }
    if (__builtin_cpu_supports("avx512bf16")) {
      Register("avx512-bf16", avx512_bf16::Mixes(), threads);
    }
  }
  if (amx::Usable()) Register("amx", amx::Mixes(), threads);
}

}  // namespace
}  // namespace tandem::kernels::peaks

int main(int argc, char** argv) {
  using namespace tandem::kernels::peaks;
  const int threads = TakeThreads(&argc, argv);
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  RegisterAll(threads > 0 ? threads : cores);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
