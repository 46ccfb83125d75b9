// MatMul's speed beside the machine's: reading memory (the roof of decode), then all products of
// one decode step, and of a prefill of one layer, of a model of Qwen2-0.5B's shape.
//
//   bazel run -c opt //tests/kernels:matmul_bench -- --benchmark_repetitions=5
//
// bytes_per_second of Decode compares with the best of ReadMemory, FLOPS with the peaks of
// //tests/kernels/peaks:peaks_bench; it counts 2 per weight and token. With --threads=N instead of
// one thread and two.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/matmul/dispatch.h"
#include "kernels/cpu/matmul/encode.h"
#include "kernels/host/memory.h"
#include "kernels/host/panels.h"
#include "kernels/host/thread_stream.h"
#include "tests/kernels/peaks/memory_reading.h"
#include "tests/kernels/peaks/threads_flag.h"

namespace tandem::kernels::cpu {
namespace {

using tensor::Type;

constexpr uint32_t kFfn = 4864;
constexpr uint32_t kKv = 128;
constexpr uint32_t kVocab = 151936;
constexpr uint32_t kLayers = 24;

// Random blocks with scales that keep results finite, in pages as a worker's weights have; every
// weight is a piece of it.
class Pool {
 public:
  explicit Pool(size_t bytes) : bytes_(bytes), data_(host::AllocatePages(bytes).value()) {
    std::mt19937_64 random(1);
    auto* const words = reinterpret_cast<uint64_t*>(data_.data());
    // Each half between 2^-5 and 2^-3; as floats about 1e-14; as bytes 40 to 127, MXFP4's exponents
    // of normal floats.
    for (size_t i = 0; i < bytes / 8; ++i) {
      words[i] = (random() & 0x0757075707570757) | 0x2828282828282828;
    }
  }
  const std::byte* Take(size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    if (at_ + bytes > bytes_) at_ = 0;
    const std::byte* piece = data_.data() + at_;
    at_ += bytes;
    return piece;
  }
  void Rewind() { at_ = 0; }

 private:
  size_t bytes_;
  size_t at_ = 0;
  Buffer data_;
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
    const uint64_t row_bytes = host::PanelRowBytes(type, cols);
    float* y = y_.data();
    for (const uint32_t n : rows) {
      Weight weight = {type, pool->Take(n * row_bytes), n, cols, row_bytes, 0, cols};
      weight.panel_rows = kernels_.lanes;
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
      const uint64_t row_bytes = host::PanelRowBytes(type, cols);
      const std::byte* data = pool->Take(experts * rows * row_bytes);
      bytes_ += std::min(experts, tokens_ * top_k) * rows * row_bytes;
      flops_ += 2.0 * rows * cols * tokens_ * top_k;
      Weight weight = {type, data, rows, cols, row_bytes, 0, cols};
      weight.panel_rows = kernels_.lanes;
      weight.matrix_stride_bytes = rows * row_bytes;
      return ExpertProjection{weight, nullptr, 0, y};
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

// Of `thread_counts`; batches and mixtures only with the last one.
void RegisterAll(const std::vector<uint32_t>& thread_counts) {
  const auto add = [](const std::string& name, auto run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMillisecond)->UseRealTime();
  };
  for (const uint32_t threads : thread_counts) {
    peaks::RegisterReadMemory(static_cast<int>(threads));
  }
  const uint32_t most = thread_counts.back();
  const std::string with_most = "/threads:" + std::to_string(most);
  for (const MatMulKernels* k : RunnableKernels()) {
    const std::string set = std::string("/") + k->name;
    for (const Type type :
         {Type::kQ8_0,  Type::kQ4_0,    Type::kQ4_1,  Type::kQ5_0,  Type::kQ5_1,    Type::kQ2_K,
          Type::kQ3_K,  Type::kQ4_K,    Type::kQ5_K,  Type::kQ6_K,  Type::kIQ4_NL,  Type::kIQ4_XS,
          Type::kMXFP4, Type::kNVFP4,   Type::kIQ1_S, Type::kIQ1_M, Type::kIQ2_XXS, Type::kIQ2_XS,
          Type::kIQ2_S, Type::kIQ3_XXS, Type::kIQ3_S, Type::kQ1_0,  Type::kQ2_0,    Type::kTQ1_0,
          Type::kTQ2_0, Type::kF16,     Type::kBF16,  Type::kF32}) {
      const std::string end = set + "/" + std::string(tensor::Name(type));
      for (const uint32_t threads : thread_counts) {
        const std::string with = end + "/threads:" + std::to_string(threads);
        if (type != Type::kF32) {
          add("Decode" + with, [=](benchmark::State& s) { Decode(s, *k, type, threads, 1); });
        }
        add("Prefill512" + with, [=](benchmark::State& s) { Prefill(s, *k, type, threads, 512); });
      }
    }
    // 25: sets of an odd size.
    for (const uint32_t batch : {4u, 8u, 16u, 25u, 32u, 64u}) {
      add("DecodeBatch" + set + "/Q8_0" + with_most + "/batch:" + std::to_string(batch),
          [=](benchmark::State& s) { Decode(s, *k, Type::kQ8_0, most, batch); });
    }
    for (const Type type : {Type::kQ8_0, Type::kQ4_K, Type::kMXFP4}) {
      for (const uint32_t tokens : {1u, 16u, 512u}) {
        add("Experts" + set + "/" + std::string(tensor::Name(type)) + with_most +
                "/tokens:" + std::to_string(tokens),
            [=](benchmark::State& s) { Experts(s, *k, type, most, tokens); });
      }
    }
    add("DecodeQ4_K_M" + set + with_most, [=](benchmark::State& s) { DecodeQ4KM(s, *k, most); });
  }
}

}  // namespace
}  // namespace tandem::kernels::cpu

int main(int argc, char** argv) {
  const int threads = tandem::kernels::peaks::TakeThreads(&argc, argv);
  if (threads > 0) {
    tandem::kernels::cpu::RegisterAll({static_cast<uint32_t>(threads)});
  } else {
    tandem::kernels::cpu::RegisterAll({1, 2});
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
