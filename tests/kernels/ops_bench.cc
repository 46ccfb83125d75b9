// Times of the ops besides MatMul and Attention on the shape of Qwen2-0.5B: 14 heads over 2 KV
// heads of 64, FFN 4864, 151936 tokens.
//
//   bazel run //tests/kernels:ops_bench -- --benchmark_filter=Sample
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "kernels/factory.h"

namespace tandem::kernels {
namespace {

constexpr uint32_t kHeads = 14, kKvHeads = 2, kDim = 64, kBlock = 16, kHidden = 896, kFfn = 4864,
                   kVocab = 151936;

// A backend with one large zeroed buffer; ops take their arrays from it.
class Bench {
 public:
  explicit Bench(const benchmark::State& state)
      : backend_(MakeBackend({.threads = static_cast<int>(state.range(0))}).value()),
        memory_(backend_->Allocate(size_t{256} << 20).value()) {}

  template <typename T>
  T* Take(size_t count) {
    T* const data = reinterpret_cast<T*>(memory_.data() + used_);
    used_ += (count * sizeof(T) + 63) / 64 * 64;
    return data;
  }

  float* Values(size_t count) {
    float* const values = Take<float>(count);
    for (size_t i = 0; i < count; ++i)
      values[i] = static_cast<float>((i * 2654435761u >> 8) % 2000) / 1000.0f - 1;
    return values;
  }

  template <typename Encode>
  void Run(benchmark::State& state, Encode encode) {
    backend_->BeginEncode(EncodeMode::kPlan);
    encode(*backend_);
    if (!backend_->FinishPlan().ok()) return state.SkipWithError("plan");
    for (auto _ : state) {
      backend_->BeginEncode(EncodeMode::kRun);
      encode(*backend_);
      if (!backend_->SubmitAndWait(Deadline::After(std::chrono::seconds(60))).ok()) {
        return state.SkipWithError("step");
      }
    }
  }

 private:
  std::unique_ptr<Backend> backend_;
  Buffer memory_;
  size_t used_ = 0;
};

// range(1): ops in the list. The cost of an entry that has next to nothing to do.
void EmptyOps(benchmark::State& state) {
  Bench bench(state);
  float* const x = bench.Values(64);
  const auto* const rows = bench.Take<int32_t>(2);
  float* const out = bench.Values(64);
  bench.Run(state, [&](Backend& b) {
    for (int64_t i = 0; i < state.range(1); ++i) b.Encode(GatherRowsParams{x, rows, 2, 8, out});
  });
  state.counters["per op"] = benchmark::Counter(
      static_cast<double>(state.range(1)),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(EmptyOps)->Args({1, 300})->Args({2, 300})->Args({2, 1})->UseRealTime();

// range(1): rows.
void RmsNorm(benchmark::State& state) {
  Bench bench(state);
  const auto rows = static_cast<uint32_t>(state.range(1));
  float* const x = bench.Values(size_t{rows} * kHidden);
  const float* const add = bench.Take<float>(size_t{rows} * kHidden);
  const float* const weight = bench.Values(kHidden);
  float* const out = bench.Take<float>(size_t{rows} * kHidden);
  bench.Run(state, [&](Backend& b) {
    b.Encode(RmsNormParams{x, add, weight, 1e-6f, rows, kHidden, out});
  });
}
BENCHMARK(RmsNorm)->Args({1, 1})->Args({1, 512})->UseRealTime();

void Activate(benchmark::State& state) {
  Bench bench(state);
  const auto rows = static_cast<uint32_t>(state.range(1));
  const float* const gate = bench.Values(size_t{rows} * kFfn);
  const float* const up = bench.Values(size_t{rows} * kFfn);
  float* const out = bench.Take<float>(size_t{rows} * kFfn);
  bench.Run(state, [&](Backend& b) {
    b.Encode(ActivateParams{Activation::kSilu, gate, up, rows, kFfn, out});
  });
}
BENCHMARK(Activate)->Args({1, 1})->Args({1, 512})->UseRealTime();

void RopeWriteKv(benchmark::State& state) {
  Bench bench(state);
  const auto rows = static_cast<uint32_t>(state.range(1));
  RopeWriteKvParams p{};
  p.q = bench.Values(size_t{rows} * kHeads * kDim);
  p.k = bench.Values(size_t{rows} * kKvHeads * kDim);
  p.v = bench.Values(size_t{rows} * kKvHeads * kDim);
  p.tokens = rows;
  p.heads = kHeads;
  auto* const positions = bench.Take<int32_t>(rows);
  for (uint32_t i = 0; i < rows; ++i) positions[i] = static_cast<int32_t>(i);
  p.positions = p.slots = positions;
  p.inv_freq = bench.Values(kDim / 2);
  p.rotary_dims = kDim;
  p.halves = true;
  p.magnitude = 1;
  const uint32_t blocks = rows / kBlock + 1;
  const size_t page_values = size_t{blocks} * kBlock * kKvHeads * kDim;
  p.pages = {tensor::Type::kF16,
             bench.Take<uint16_t>(page_values),
             bench.Take<uint16_t>(page_values),
             blocks,
             kBlock,
             kKvHeads,
             kDim,
             kDim};
  bench.Run(state, [&](Backend& b) { b.Encode(p); });
}
BENCHMARK(RopeWriteKv)->Args({1, 1})->Args({1, 512})->UseRealTime();

// Sums of twelve uniform numbers: nearly normal, of the given deviation.
void FillLogits(float* logits, size_t count, float deviation) {
  uint64_t state = 1;
  for (size_t i = 0; i < count; ++i) {
    float sum = -6;
    for (int j = 0; j < 12; ++j) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      sum += static_cast<float>(state >> 40) * 0x1p-24f;
    }
    logits[i] = sum * deviation;
  }
}

// range(1): 0 greedy, 1 plain, 2 top_k 40 and top_p, 3 top_p only; range(2): rows; range(3):
// standard deviation of the logits in tenths, small where weights are spread over all ids.
void Sample(benchmark::State& state) {
  Bench bench(state);
  const auto count = static_cast<uint32_t>(state.range(2));
  float* const logits = bench.Take<float>(size_t{count} * kVocab);
  FillLogits(logits, size_t{count} * kVocab, static_cast<float>(state.range(3)) / 10);
  auto* const rows = bench.Take<SamplingRow>(count);
  for (uint32_t i = 0; i < count; ++i) {
    rows[i] = {.seed = i, .logits_row = static_cast<int32_t>(i)};
    if (state.range(1) == 0) rows[i].temperature = 0;
    if (state.range(1) == 2) rows[i].top_k = 40;
    if (state.range(1) >= 2) rows[i].top_p = 0.95f;
  }
  auto* const out = bench.Take<int32_t>(count);
  bench.Run(state, [&](Backend& b) {
    b.Encode(SampleParams{logits, kVocab, rows, count, nullptr, nullptr, out});
  });
}
BENCHMARK(Sample)
    ->ArgsProduct({{1}, {0, 1, 2, 3}, {1}, {10, 30}})
    ->ArgsProduct({{2}, {0, 3}, {8, 32}, {10, 30}})
    ->UseRealTime();

// range(1): top_n, beside one given id.
void LogProbs(benchmark::State& state) {
  Bench bench(state);
  const float* const logits = bench.Values(kVocab);
  auto* const row = bench.Take<LogProbsRow>(1);
  *row = {};
  row->ids_end = 1;
  row->top_n = static_cast<uint32_t>(state.range(1));
  auto* const ids = bench.Take<int32_t>(1);
  const uint32_t count = 1 + row->top_n;
  auto* const out_ids = bench.Take<int32_t>(count);
  auto* const out_logprobs = bench.Take<float>(count);
  auto* const out_ranks = bench.Take<int32_t>(count);
  bench.Run(state, [&](Backend& b) {
    b.Encode(LogProbsParams{logits, kVocab, row, 1, ids, nullptr, count, out_ids, out_logprobs,
                            out_ranks});
  });
}
BENCHMARK(LogProbs)->Args({1, 0})->Args({1, 20})->UseRealTime();

}  // namespace
}  // namespace tandem::kernels

BENCHMARK_MAIN();
