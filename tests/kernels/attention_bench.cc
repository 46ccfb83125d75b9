// Attention over pages on the CPU backend, beside reading memory with as many threads: the roof of
// decode. Blocks lie scattered in the pages, as in a cache in use, or in order, as those of a
// prompt in a fresh one.
//
//   bazel run //tests/kernels:attention_bench --
//   --benchmark_filter='ReadMemory|Decode/auto/14x2x64/F16'
//
// bytes_per_second of Decode counts the K and V that one step reads, once, and compares with that
// of ReadMemory.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "kernels/factory.h"
#include "kernels/host/thread_stream.h"

namespace tandem::kernels {
namespace {

using tensor::Type;

constexpr uint32_t kBlock = 16;
// Calls of a decode step, like layers, read so much that no cache keeps it until the next step.
constexpr size_t kStepBytes = size_t{768} << 20;

struct Shape {
  const char* name;
  uint32_t heads;
  uint32_t kv_heads;
  uint32_t head_dim;
  uint32_t value_dim;
  bool latent = false;
};
constexpr Shape kQwen = {"14x2x64", 14, 2, 64, 64};          // Qwen2-0.5B
constexpr Shape kLlama = {"32x8x128", 32, 8, 128, 128};      // Llama-3-8B
constexpr Shape kDeepSeek = {"mla", 16, 1, 576, 512, true};  // DeepSeek-V2-Lite

// Memory like a backend's that every benchmark takes its arrays from, written once.
class Pool {
 public:
  explicit Pool(size_t bytes)
      : size_(bytes),
        backend_(MakeBackend({.threads = 1}).value()),
        memory_(backend_->Allocate(bytes).value()) {
    // As bytes 60, as halves near 1, as BF16 and F32 near 0.01.
    std::memset(memory_.data(), 0x3c, bytes);
  }
  void Rewind() { used_ = 0; }
  template <typename T>
  T* Take(size_t count) {
    T* const data = reinterpret_cast<T*>(memory_.data() + used_);
    used_ += (count * sizeof(T) + 63) / 64 * 64;
    if (used_ > size()) std::abort();
    return data;
  }
  size_t size() const { return size_; }
  const uint64_t* words() const { return reinterpret_cast<const uint64_t*>(memory_.data()); }

 private:
  const size_t size_;
  const std::unique_ptr<Backend> backend_;
  Buffer memory_;
  size_t used_ = 0;
};

Pool& Memory() {
  static Pool pool(size_t{1536} << 20);
  pool.Rewind();
  return pool;
}

struct Case {
  config::CpuKernels kernels;
  Shape shape;
  Type type;
  int threads;
  uint32_t tokens;  // of each sequence
  uint32_t context;
  uint32_t seqs;
  bool in_order = false;
};

// K and V of all sequences.
size_t KvBytes(const Case& c) {
  const Shape& s = c.shape;
  const size_t row =
      tensor::RowBytes(c.type, s.head_dim) + (s.latent ? 0 : tensor::RowBytes(c.type, s.value_dim));
  return size_t{c.context} * c.seqs * s.kv_heads * row;
}

AttentionParams MakeCall(const Case& c, const Backend& backend, Pool* pool) {
  const Shape& s = c.shape;
  const uint32_t blocks = (c.context + kBlock - 1) / kBlock, all = c.seqs * blocks;
  AttentionParams p{};
  p.tokens = c.tokens * c.seqs;
  p.num_seqs = c.seqs;
  p.max_query_len = c.tokens;
  p.max_context_len = c.context;
  float* const q = pool->Take<float>(size_t{p.tokens} * s.heads * s.head_dim);
  for (size_t i = 0; i < size_t{p.tokens} * s.heads * s.head_dim; ++i)
    q[i] = static_cast<float>((i * 2654435761u >> 8) % 2000) / 1000.0f - 1;
  auto* const offsets = pool->Take<int32_t>(c.seqs + 1);
  auto* const contexts = pool->Take<int32_t>(c.seqs);
  auto* const tables = pool->Take<int32_t>(all);
  auto* const table_rows = pool->Take<int32_t>(c.seqs);
  offsets[0] = 0;
  for (uint32_t i = 0; i < c.seqs; ++i) {
    offsets[i + 1] = static_cast<int32_t>((i + 1) * c.tokens);
    contexts[i] = static_cast<int32_t>(c.context);
    table_rows[i] = static_cast<int32_t>(i);
  }
  // A prime beyond any count of blocks: each block once.
  const size_t step = c.in_order ? 1 : 15485863;
  for (uint32_t i = 0; i < all; ++i) tables[i] = static_cast<int32_t>(i * step % all);
  p.q = q;
  p.query_offsets = offsets;
  p.context_lens = contexts;
  p.block_tables = tables;
  p.table_rows = table_rows;
  p.table_stride = blocks;
  const size_t rows = size_t{all} * kBlock * s.kv_heads;
  char* const k = pool->Take<char>(rows * tensor::RowBytes(c.type, s.head_dim));
  char* const v = s.latent ? k : pool->Take<char>(rows * tensor::RowBytes(c.type, s.value_dim));
  p.pages = {c.type, k, v, all, kBlock, s.kv_heads, s.head_dim, s.value_dim, s.latent};
  p.pages.k_columns = backend.WantsKeyColumns(p.pages);
  p.heads = s.heads;
  p.heads_per_kv = s.heads / s.kv_heads;
  p.scale = 0.125f;
  p.out = pool->Take<float>(size_t{p.tokens} * s.heads * s.value_dim);
  return p;
}

void Attention(benchmark::State& state, const Case& c) {
  const auto backend = MakeBackend({.cpu_kernels = c.kernels, .threads = c.threads}).value();
  Pool& pool = Memory();
  const size_t bytes = KvBytes(c);
  const size_t calls = c.tokens == 1 ? (kStepBytes + bytes - 1) / bytes : 1;
  std::vector<AttentionParams> list;
  for (size_t i = 0; i < calls; ++i) list.push_back(MakeCall(c, *backend, &pool));
  const auto encode = [&](EncodeMode mode) {
    backend->BeginEncode(mode);
    for (const AttentionParams& p : list) backend->Encode(p);
  };
  encode(EncodeMode::kPlan);
  if (!backend->FinishPlan().ok()) return state.SkipWithError("plan");
  for (auto _ : state) {
    encode(EncodeMode::kRun);
    if (!backend->SubmitAndWait(Deadline::After(std::chrono::seconds(60))).ok())
      return state.SkipWithError("step");
  }
  const Shape& s = c.shape;
  const double calls_run = static_cast<double>(state.iterations()) * static_cast<double>(calls);
  if (c.tokens == 1)
    state.SetBytesProcessed(static_cast<int64_t>(calls_run * static_cast<double>(bytes)));
  const double pairs =
      double{c.tokens * 1.0} * (c.context - (c.tokens - 1) / 2.0) * c.seqs * s.heads;
  state.counters["FLOPS"] = benchmark::Counter(calls_run * pairs * 2 * (s.head_dim + s.value_dim),
                                               benchmark::Counter::kIsRate);
}

struct ReadParams {
  const uint64_t* words;
  size_t count;  // per task
  uint64_t* sink;
};

void ReadTask(const ReadParams& p, const host::TaskContext& context) {
  using Vec = uint64_t __attribute__((vector_size(64)));
  Vec sum = {}, other = {};
  const auto* v = reinterpret_cast<const Vec*>(p.words + context.task * p.count);
  for (size_t i = 0; i < p.count / 8; i += 2) {
    __builtin_prefetch(v + i + 64);
    __builtin_prefetch(v + i + 65);
    sum ^= v[i];
    other ^= v[i + 1];
  }
  p.sink[context.thread * 8] ^= (sum ^ other)[0];
}

// range(0): threads.
void ReadMemory(benchmark::State& state) {
  const auto threads = static_cast<uint32_t>(state.range(0));
  const Pool& pool = Memory();
  alignas(64) uint64_t sink[64 * 8] = {};
  const size_t task_bytes = size_t{256} << 10;
  host::OpList list(threads);
  list.Clear(EncodeMode::kRun);
  list.Add("read", static_cast<uint32_t>(pool.size() / task_bytes), &ReadTask,
           ReadParams{pool.words(), task_bytes / 8, sink});
  host::ThreadStream stream(threads);
  for (auto _ : state) {
    stream.Start(list, {}, Deadline::After(std::chrono::minutes(1)));
    if (!stream.Wait().ok()) state.SkipWithError("deadline");
  }
  benchmark::DoNotOptimize(sink[0]);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(pool.size()));
}

void Add(const Case& c) {
  const std::string name = std::string(c.tokens == 1 ? "Decode/" : "Prefill/") +
                           (c.kernels == config::CpuKernels::kAvx2 ? "avx2/" : "auto/") +
                           c.shape.name + "/" + std::string(tensor::Name(c.type)) +
                           "/threads:" + std::to_string(c.threads) +
                           "/context:" + std::to_string(c.context) +
                           "/batch:" + std::to_string(c.seqs) + (c.in_order ? "/in_order" : "");
  benchmark::RegisterBenchmark(name.c_str(), [c](benchmark::State& s) { Attention(s, c); })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

void RegisterAll() {
  for (const int threads : {1, 2}) {
    benchmark::RegisterBenchmark("ReadMemory", &ReadMemory)
        ->Arg(threads)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
  for (const auto kernels : {config::CpuKernels::kAuto, config::CpuKernels::kAvx2}) {
    for (const Shape& shape : {kQwen, kLlama, kDeepSeek}) {
      for (const Type type : {Type::kF16, Type::kBF16, Type::kQ8_0, Type::kF32}) {
        for (const int threads : {1, 2}) {
          for (const uint32_t context : {8192u, 32768u}) {
            Add({kernels, shape, type, threads, 1, context, 1});
            Add({kernels, shape, type, threads, 1, context, 1, /*in_order=*/true});
          }
          Add({kernels, shape, type, threads, 1, 8192, 8});
          for (const uint32_t context : {512u, 4096u})
            Add({kernels, shape, type, threads, context, context, 1});
        }
      }
    }
  }
}

}  // namespace
}  // namespace tandem::kernels

int main(int argc, char** argv) {
  tandem::kernels::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
