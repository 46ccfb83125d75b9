// What a thread stream costs beside the tasks. Run on idle cores:
//   bazel run -c opt //tests/kernels/host:thread_stream_bench
// Arguments: threads, tasks of an entry.
#include <chrono>

#include "benchmark/benchmark.h"
#include "common/base/check.h"
#include "kernels/host/thread_stream.h"

namespace tandem::kernels::host {
namespace {

constexpr uint32_t kEntries = 200;  // of a list, about those of a decode step

struct NoTask {};
void DoNothing(const NoTask&, const TaskContext&) {}

void Run(benchmark::State& state, uint32_t entries) {
  const auto threads = static_cast<uint32_t>(state.range(0));
  ThreadStream stream(threads);
  OpList list(threads);
  list.Clear(EncodeMode::kRun);
  for (uint32_t i = 0; i < entries; ++i) {
    list.Add("nothing", static_cast<uint32_t>(state.range(1)), &DoNothing, NoTask{});
  }
  for (auto _ : state) {
    stream.Start(list, {}, Deadline::After(std::chrono::seconds(60)));
    TANDEM_CHECK_OK(stream.Wait());
  }
}

// One entry after another: a barrier each. The counter is the time of an entry.
void BM_Entry(benchmark::State& state) {
  Run(state, kEntries);
  state.counters["per_entry"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kEntries,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_Entry)
    ->Args({1, 1})
    ->Args({1, 16})
    ->Args({2, 1})
    ->Args({2, 2})
    ->Args({2, 16})
    ->UseRealTime();

// A list of one entry, from Start to the end of Wait.
void BM_List(benchmark::State& state) { Run(state, 1); }
BENCHMARK(BM_List)->Args({1, 1})->Args({2, 2})->UseRealTime();

}  // namespace
}  // namespace tandem::kernels::host

BENCHMARK_MAIN();
