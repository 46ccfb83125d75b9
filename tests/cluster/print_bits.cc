// Prints a hash of the bits that real workers compute, a line per configuration: logits and tokens
// of every golden model, every quantised model and the demo model, on every kernel set, at TP 1, 2
// and 4, over both step transports. Two trees that print the same lines on one machine compute the
// same: run it before and after a change that must not move a bit. Lines differ between machines
// whose C library or instruction sets do.
#include <xxhash.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/status.h"
#include "kernels/factory.h"
#include "tests/cluster/engine_driver.h"
#include "tests/cluster/golden_cases.h"
#include "tests/cluster/worker_driver.h"
#include "tests/common/config/named.h"

namespace tandem::testing {
namespace {

constexpr uint32_t kSampledTokens = 32;

class Bits {
 public:
  template <typename T>
  void Add(const std::vector<T>& values) {
    hash_ = XXH3_64bits_withSeed(values.data(), values.size() * sizeof(T), hash_);
    count_ += values.size();
  }
  void Print(const std::string& what) const {
    std::printf("%-64s %9zu values %016llx\n", what.c_str(), count_,
                static_cast<unsigned long long>(hash_));
    std::fflush(stdout);
  }

 private:
  XXH64_hash_t hash_ = 0;
  size_t count_ = 0;
};

// Stored positions' logits, prefilled at once and in chunks, and the greedy continuation.
absl::Status AddGoldenCases(const config::ServerConfig& options, const GoldenModel& golden,
                            Bits& bits) {
  TANDEM_ASSIGN_OR_RETURN(auto driver, WorkerDriver::Start(options));
  for (const GoldenCase& one : golden.cases) {
    for (uint32_t chunk : {256u, 5u}) {
      driver->Reset();
      TANDEM_ASSIGN_OR_RETURN(const auto logits, driver->Prefill(one.tokens, one.positions, chunk));
      for (const auto& row : logits) bits.Add(row);
    }
    TANDEM_ASSIGN_OR_RETURN(const auto tokens,
                            GreedyTokens(*driver, one.tokens, one.greedy.size()));
    bits.Add(tokens);
  }
  return absl::OkStatus();
}

// Sampled continuations of random prompts, all in one batch.
absl::Status AddSampled(const config::ServerConfig& options, TokenId vocab, Bits& bits) {
  TANDEM_ASSIGN_OR_RETURN(auto driver, EngineDriver::Start(options));
  std::vector<Output*> outputs;
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    std::vector<TokenId> prompt = RandomPrompt(seed, 5 + 9 * seed, vocab);
    coordinator::Sampling sampling;
    sampling.temperature = 0.9f;
    sampling.top_p = 0.95f;
    sampling.top_k = seed % 2 == 0 ? 40 : 0;
    sampling.max_tokens = kSampledTokens;
    sampling.seed = seed;
    outputs.push_back(&driver->Add(std::move(prompt), sampling, /*want_logits=*/true));
  }
  TANDEM_RETURN_IF_ERROR(driver->RunAll());
  for (const Output* output : outputs) {
    bits.Add(output->tokens);
    for (const auto& row : output->logits) bits.Add(row);
  }
  return absl::OkStatus();
}

absl::Status PrintModel(const std::string& name, const GoldenModel& golden, TokenId vocab) {
  for (const char* kernels : {"reference", "avx2", "avx512"}) {
    if (!kernels::MakeBackend({.cpu_kernels = Named<config::CpuKernels>(kernels), .threads = 1})
             .ok()) {
      continue;
    }
    for (int ranks : {1, 2, 4}) {
      for (const char* transport : {"shm", "grpc"}) {
        config::ServerConfig options = TestServerConfig(golden.path);
        options.worker.device.cpu_kernels = Named<config::CpuKernels>(kernels);
        options.cluster.tensor_parallel_size = ranks;
        options.worker.transport.step_transport = Named<config::StepTransport>(transport);
        const std::string what =
            name + " " + kernels + " tp" + std::to_string(ranks) + " " + transport;
        Bits bits;
        absl::Status status = AddGoldenCases(options, golden, bits);
        if (status.ok()) status = AddSampled(options, vocab, bits);
        if (absl::IsInvalidArgument(status)) {
          std::printf("%-64s impossible\n", what.c_str());  // ranks do not divide the heads
          continue;
        }
        TANDEM_RETURN_IF_ERROR(Annotate(status, what));
        bits.Print(what);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status PrintAll() {
  for (const char* name : {"llama",
                           "llama-rope-freqs",
                           "qwen2",
                           "qwen3",
                           "llama-yarn",
                           "llama-moe",
                           "qwen2moe",
                           "qwen3moe",
                           "gpt2",
                           "phi3",
                           "phi3-partial-swa",
                           "deepseek2-lite",
                           "deepseek2-v3",
                           "deepseek2-v3-split",
                           "gpt-oss",
                           "gemma2",
                           "gemma3",
                           "gemma4",
                           "gemma4-dense",
                           "gemma4-moe",
                           "smollm3",
                           "mistral3",
                           "glm4moe",
                           "glm4moe-mtp",
                           "minimax-m2",
                           "llama4",
                           "llama4-chunk"}) {
    TANDEM_RETURN_IF_ERROR(PrintModel(name, ReadArchGolden(name), 256));
  }
  for (const char* file : {"Q8_0.gguf", "Q4_0.gguf", "Q4_K_M.gguf", "Q5_K_M.gguf", "Q6_K.gguf"}) {
    TANDEM_RETURN_IF_ERROR(PrintModel(file, ReadQuantGolden(file), 256));
  }
  return PrintModel("demo", {.path = "models/demo.gguf", .cases = {}}, 256);
}

}  // namespace
}  // namespace tandem::testing

int main() {
  const absl::Status status = tandem::testing::PrintAll();
  if (status.ok()) return 0;
  std::fprintf(stderr, "print_bits: %s\n", std::string(status.message()).c_str());
  return 1;
}
