// MatMul's speed beside the machine's: reading memory (the roof of decode), then all products of
// one decode step, and of a prefill of one layer, of a model of Qwen2-0.5B's shape.
//
//   bazel run -c opt //tests/kernels:matmul_bench -- --benchmark_repetitions=5
//
// bytes_per_second of Decode compares with that of ReadMemory; FLOPS counts 2 per weight and token.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/matmul/dispatch.h"
#include "kernels/cpu/matmul/encode.h"
#include "kernels/host/thread_stream.h"

namespace tandem::kernels::cpu {
namespace {

using tensor::Type;

constexpr uint32_t kFfn = 4864;
constexpr uint32_t kKv = 128;
constexpr uint32_t kVocab = 151936;
constexpr uint32_t kLayers = 24;

// Random blocks with scales that keep results finite; every weight is a piece of it.
class Pool {
 public:
  explicit Pool(size_t bytes) : bytes_(bytes), data_(new uint64_t[bytes / 8]) {
    std::mt19937_64 random(1);
    // Each half between 2^-5 and 2^-3; as floats about 1e-14; as bytes 40 to 127, MXFP4's exponents
    // of normal floats.
    for (size_t i = 0; i < bytes / 8; ++i) {
      data_[i] = (random() & 0x0757075707570757) | 0x2828282828282828;
    }
  }
  const std::byte* Take(size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    if (at_ + bytes > bytes_) at_ = 0;
    const std::byte* piece = reinterpret_cast<const std::byte*>(data_.get()) + at_;
    at_ += bytes;
    return piece;
  }
  const uint64_t* words() const { return data_.get(); }
  size_t bytes() const { return bytes_; }
  void Rewind() { at_ = 0; }

 private:
  size_t bytes_;
  size_t at_ = 0;
  std::unique_ptr<uint64_t[]> data_;
};

Pool& Weights() {
  static Pool pool(size_t{768} << 20);
  pool.Rewind();
  return pool;
}

// Op lists of MatMul only, run by a stream as in a worker.
class Runner {
 public:
  Runner(const MatMulKernels& kernels, uint32_t threads, uint32_t tokens)
      : kernels_(kernels),
        tokens_(tokens),
        list_(threads),
        stream_(threads),
        x_(size_t{tokens} * kFfn),
        y_(size_t{tokens} * (kVocab + 3 * kFfn)) {
    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    for (float& value : x_) value = normal(random);
    list_.Clear(EncodeMode::kRun);
  }

  // Projections of one input of `cols` columns.
  void Add(Type type, uint32_t cols, const std::vector<uint32_t>& rows, Pool* pool) {
    MatMulParams params = {x_.data(), tokens_, cols, 0, {}};
    const uint64_t row_bytes = tensor::RowBytes(type, cols);
    float* y = y_.data();
    for (const uint32_t n : rows) {
      const Weight weight = {type, pool->Take(n * row_bytes), n, cols, row_bytes, 0, cols};
      params.projections[params.num_projections++] = {weight, nullptr, y, n};
      y += size_t{n} * tokens_;
      bytes_ += n * row_bytes;
      flops_ += 2.0 * n * cols * tokens_;
    }
    EncodeMatMulWith(list_, params, kernels_);
  }

  // Up and down of a mixture: `top_k` of `experts` for each token, in turn.
  void AddExperts(Type type, uint32_t hidden, uint32_t ffn, uint32_t experts, uint32_t top_k,
                  Pool* pool) {
    for (uint32_t i = 0; i < tokens_ * top_k; ++i) {
      ids_.push_back(static_cast<int32_t>(i * 5 % experts));
      expert_weights_.push_back(0.1f);
    }
    const auto projection = [&](uint32_t rows, uint32_t cols, float* y) {
      const uint64_t row_bytes = tensor::RowBytes(type, cols);
      const std::byte* data = pool->Take(experts * rows * row_bytes);
      bytes_ += std::min(experts, tokens_ * top_k) * rows * row_bytes;
      flops_ += 2.0 * rows * cols * tokens_ * top_k;
      return ExpertProjection{
          {type, data, rows, cols, row_bytes, 0, cols}, rows * row_bytes, nullptr, 0, y};
    };
    float* const gate = y_.data();
    float* const up = gate + size_t{tokens_} * top_k * ffn;
    float* const out = up + size_t{tokens_} * top_k * ffn;
    ExpertMatMulParams params = {x_.data(), tokens_, hidden,  top_k, ids_.data(),
                                 nullptr,   0,       experts, 2,     {}};
    params.projections = {projection(ffn, hidden, gate), projection(ffn, hidden, up)};
    EncodeExpertMatMulWith(list_, params, kernels_);
    params.x = gate;
    params.x_stride = ffn;
    params.weights = expert_weights_.data();
    params.num_projections = 1;
    params.projections[0] = projection(hidden, ffn, out);
    EncodeExpertMatMulWith(list_, params, kernels_);
  }

  void AddLayer(Type type, Type down_type, uint32_t hidden, Pool* pool) {
    Add(type, hidden, {hidden, kKv, kKv}, pool);
    Add(type, hidden, {hidden}, pool);
    Add(type, hidden, {kFfn, kFfn}, pool);
    Add(down_type, kFfn, {hidden}, pool);
  }

  void Run(benchmark::State& state) {
    const host::ScratchSize size = list_.scratch();
    std::vector<std::byte> memory(size.shared + list_.threads() * size.per_thread + 64);
    void* begin = memory.data();
    size_t space = memory.size();
    auto* base = static_cast<std::byte*>(std::align(64, memory.size() - 64, begin, space));
    for (auto _ : state) {
      stream_.Start(list_, {base, base + size.shared, size.per_thread},
                    Deadline::After(std::chrono::minutes(1)));
      if (!stream_.Wait().ok()) state.SkipWithError("deadline");
    }
    const double steps = static_cast<double>(state.iterations());
    state.SetBytesProcessed(static_cast<int64_t>(steps * static_cast<double>(bytes_)));
    state.counters["FLOPS"] = benchmark::Counter(steps * flops_, benchmark::Counter::kIsRate);
    state.counters["tokens/s"] = benchmark::Counter(steps * tokens_, benchmark::Counter::kIsRate);
  }

 private:
  const MatMulKernels& kernels_;
  const uint32_t tokens_;
  host::OpList list_;
  host::ThreadStream stream_;
  std::vector<float> x_;
  std::vector<float> y_;
  std::vector<int32_t> ids_;
  std::vector<float> expert_weights_;
  uint64_t bytes_ = 0;
  double flops_ = 0;
};

// 256-value blocks need a hidden size that they divide.
uint32_t Hidden(Type type) { return tensor::Traits(type).block_values == 256 ? 1024 : 896; }

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

void ReadMemory(benchmark::State& state) {
  const auto threads = static_cast<uint32_t>(state.range(0));
  Pool& pool = Weights();
  alignas(64) uint64_t sink[64 * 8] = {};
  const size_t task_bytes = size_t{256} << 10;
  host::OpList list(threads);
  list.Clear(EncodeMode::kRun);
  list.Add("read", static_cast<uint32_t>(pool.bytes() / task_bytes), &ReadTask,
           ReadParams{pool.words(), task_bytes / 8, sink});
  host::ThreadStream stream(threads);
  for (auto _ : state) {
    stream.Start(list, {}, Deadline::After(std::chrono::minutes(1)));
    if (!stream.Wait().ok()) state.SkipWithError("deadline");
  }
  benchmark::DoNotOptimize(sink[0]);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(pool.bytes()));
}

void Decode(benchmark::State& state, const MatMulKernels& kernels, Type type, uint32_t threads,
            uint32_t batch) {
  Pool& pool = Weights();
  Runner runner(kernels, threads, batch);
  for (uint32_t i = 0; i < kLayers; ++i) runner.AddLayer(type, type, Hidden(type), &pool);
  runner.Add(type, Hidden(type), {kVocab}, &pool);
  runner.Run(state);
}

// What llama.cpp's Q4_K_M becomes where 256 does not divide the hidden size.
void DecodeQ4KM(benchmark::State& state, const MatMulKernels& kernels, uint32_t threads) {
  Pool& pool = Weights();
  Runner runner(kernels, threads, 1);
  for (uint32_t i = 0; i < kLayers; ++i) {
    runner.AddLayer(Type::kQ5_0, i % 2 == 0 ? Type::kQ6_K : Type::kQ4_K, 896, &pool);
  }
  runner.Add(Type::kQ8_0, 896, {kVocab}, &pool);
  runner.Run(state);
}

// tokens/s here is of one layer; a model's is about 1/24 of it.
void Prefill(benchmark::State& state, const MatMulKernels& kernels, Type type, uint32_t threads,
             uint32_t tokens) {
  Pool& pool = Weights();
  Runner runner(kernels, threads, tokens);
  runner.AddLayer(type, type, Hidden(type), &pool);
  runner.Run(state);
}

// One layer of a mixture of Qwen3-30B-A3B's shape: 8 of 128 experts.
void Experts(benchmark::State& state, const MatMulKernels& kernels, Type type, uint32_t threads,
             uint32_t tokens) {
  Pool& pool = Weights();
  Runner runner(kernels, threads, tokens);
  runner.AddExperts(type, 2048, 768, 128, 8, &pool);
  runner.Run(state);
}

void RegisterAll() {
  const auto add = [](const std::string& name, auto run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMillisecond)->UseRealTime();
  };
  for (const int threads : {1, 2}) {
    benchmark::RegisterBenchmark("ReadMemory", &ReadMemory)
        ->Arg(threads)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
  for (const MatMulKernels* k : RunnableKernels()) {
    const std::string set = std::string("/") + k->name;
    for (const Type type :
         {Type::kQ8_0, Type::kQ4_0, Type::kQ4_1, Type::kQ5_0, Type::kQ5_1, Type::kQ2_K, Type::kQ3_K,
          Type::kQ4_K, Type::kQ5_K, Type::kQ6_K, Type::kIQ4_NL, Type::kIQ4_XS, Type::kMXFP4,
          Type::kF16, Type::kBF16, Type::kF32}) {
      const std::string end = set + "/" + std::string(tensor::Name(type));
      for (const uint32_t threads : {1u, 2u}) {
        const std::string with = end + "/threads:" + std::to_string(threads);
        if (type != Type::kF32) {
          add("Decode" + with, [=](benchmark::State& s) { Decode(s, *k, type, threads, 1); });
        }
        add("Prefill512" + with, [=](benchmark::State& s) { Prefill(s, *k, type, threads, 512); });
      }
    }
    for (const uint32_t batch : {4u, 8u, 32u}) {
      add("DecodeBatch" + set + "/Q8_0/threads:2/batch:" + std::to_string(batch),
          [=](benchmark::State& s) { Decode(s, *k, Type::kQ8_0, 2, batch); });
    }
    for (const Type type : {Type::kQ8_0, Type::kQ4_K, Type::kMXFP4}) {
      for (const uint32_t tokens : {1u, 16u, 512u}) {
        add("Experts" + set + "/" + std::string(tensor::Name(type)) +
                "/threads:2/tokens:" + std::to_string(tokens),
            [=](benchmark::State& s) { Experts(s, *k, type, 2, tokens); });
      }
    }
    add("DecodeQ4_K_M" + set + "/threads:2", [=](benchmark::State& s) { DecodeQ4KM(s, *k, 2); });
  }
}

}  // namespace
}  // namespace tandem::kernels::cpu

int main(int argc, char** argv) {
  tandem::kernels::cpu::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
