// Times of the ops besides MatMul on the shape of Qwen2-0.5B: 14 heads over 2 KV heads of 64, FFN
// 4864, 151936 tokens.
//
//   bazel run //tests/kernels:ops_bench -- --benchmark_filter=Prefill
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
      if (!backend_->Submit(Deadline::After(std::chrono::seconds(60))).ok() ||
          !backend_->Wait().ok()) {
        return state.SkipWithError("step");
      }
    }
  }

 private:
  std::unique_ptr<Backend> backend_;
  Buffer memory_;
  size_t used_ = 0;
};

struct AttentionSize {
  uint32_t heads = kHeads;
  uint32_t kv_heads = kKvHeads;
  uint32_t head_dim = kDim;
  uint32_t value_dim = kDim;
  tensor::Type type = tensor::Type::kF16;
  bool latent = false;
};

// range(1): query tokens, range(2): context of every sequence, range(3): sequences.
void Attention(benchmark::State& state, const AttentionSize& size) {
  Bench bench(state);
  const auto tokens = static_cast<uint32_t>(state.range(1)),
             context = static_cast<uint32_t>(state.range(2));
  const auto seqs = static_cast<uint32_t>(state.range(3));
  const uint32_t blocks = (context + kBlock - 1) / kBlock;
  AttentionParams p{};
  p.q = bench.Values(size_t{tokens} * seqs * size.heads * size.head_dim);
  p.tokens = tokens * seqs;
  p.num_seqs = seqs;
  auto* const offsets = bench.Take<int32_t>(seqs + 1);
  auto* const contexts = bench.Take<int32_t>(seqs);
  auto* const tables = bench.Take<int32_t>(size_t{seqs} * blocks);
  auto* const table_rows = bench.Take<int32_t>(seqs);
  for (uint32_t s = 0; s < seqs; ++s) {
    offsets[s + 1] = static_cast<int32_t>((s + 1) * tokens);
    contexts[s] = static_cast<int32_t>(context);
    table_rows[s] = static_cast<int32_t>(s);
    for (uint32_t b = 0; b < blocks; ++b)
      tables[s * blocks + b] = static_cast<int32_t>(s * blocks + b);
  }
  p.query_offsets = offsets;
  p.context_lens = contexts;
  p.block_tables = tables;
  p.table_rows = table_rows;
  p.table_stride = blocks;
  const size_t page_rows = size_t{seqs} * blocks * kBlock * size.kv_heads;
  p.pages = {size.type,
             bench.Take<char>(page_rows * tensor::RowBytes(size.type, size.head_dim)),
             bench.Take<char>(page_rows * tensor::RowBytes(size.type, size.value_dim)),
             seqs * blocks,
             kBlock,
             size.kv_heads,
             size.head_dim,
             size.value_dim,
             size.latent};
  p.heads = size.heads;
  p.heads_per_kv = size.heads / size.kv_heads;
  p.scale = 0.125f;
  p.max_query_len = tokens;
  p.max_context_len = context;
  p.out = bench.Take<float>(size_t{tokens} * seqs * size.heads * size.value_dim);
  bench.Run(state, [&](Backend& b) { b.Encode(p); });
  const double pairs = double{tokens * 1.0} * (context - (tokens - 1) / 2.0) * seqs * size.heads;
  state.counters["GFLOP/s"] = benchmark::Counter(pairs * 2 * (size.head_dim + size.value_dim),
                                                 benchmark::Counter::kIsIterationInvariantRate,
                                                 benchmark::Counter::kIs1000);
}
void AttentionF16(benchmark::State& state) { Attention(state, {}); }
void AttentionF32(benchmark::State& state) { Attention(state, {.type = tensor::Type::kF32}); }
void AttentionBf16(benchmark::State& state) { Attention(state, {.type = tensor::Type::kBF16}); }
void AttentionQ8_0(benchmark::State& state) { Attention(state, {.type = tensor::Type::kQ8_0}); }
// DeepSeek-V2-Lite's.
void AttentionLatent(benchmark::State& state) {
  Attention(state, {16, 1, 576, 512, tensor::Type::kF16, true});
}
BENCHMARK(AttentionF16)
    ->Name("Prefill")
    ->Args({1, 512, 512, 1})
    ->Args({2, 512, 512, 1})
    ->Args({1, 512, 4096, 1})
    ->UseRealTime();
BENCHMARK(AttentionF16)
    ->Name("Decode")
    ->Args({1, 1, 512, 1})
    ->Args({1, 1, 4096, 1})
    ->Args({2, 1, 4096, 1})
    ->Args({1, 1, 512, 32})
    ->UseRealTime();
BENCHMARK(AttentionF32)->Name("DecodeF32")->Args({1, 1, 4096, 1})->UseRealTime();
BENCHMARK(AttentionBf16)->Name("DecodeBf16")->Args({1, 1, 4096, 1})->UseRealTime();
BENCHMARK(AttentionQ8_0)->Name("DecodeQ8_0")->Args({1, 1, 4096, 1})->UseRealTime();
BENCHMARK(AttentionLatent)
    ->Name("Latent")
    ->Args({1, 128, 512, 1})
    ->Args({1, 1, 4096, 1})
    ->UseRealTime();

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

// range(1): 0 greedy, 1 plain, 2 top_k and top_p, 3 top_p only.
void Sample(benchmark::State& state) {
  Bench bench(state);
  const float* const logits = bench.Values(kVocab);
  auto* const row = bench.Take<SamplingRow>(1);
  *row = {};
  row->temperature = state.range(1) == 0 ? 0.0f : 0.7f;
  if (state.range(1) == 2) row->top_k = 40;
  if (state.range(1) >= 2) row->top_p = 0.9f;
  auto* const out = bench.Take<int32_t>(1);
  bench.Run(state, [&](Backend& b) {
    b.Encode(SampleParams{logits, kVocab, row, 1, nullptr, out});
  });
}
BENCHMARK(Sample)->Args({1, 0})->Args({1, 1})->Args({1, 2})->Args({1, 3})->UseRealTime();

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
