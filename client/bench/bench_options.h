// What `tandem bench` is asked to measure, and the worker limits that follow from it.
#ifndef TANDEM_CLIENT_BENCH_BENCH_OPTIONS_H_
#define TANDEM_CLIENT_BENCH_BENCH_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/server/options.h"

namespace tandem::client {

// Tokens of a decode measurement's prompts: short, so that decoding is what is measured.
inline constexpr uint32_t kDecodeContext = 8;

struct BenchOptions {
  coordinator::WorkerOptions worker;
  uint32_t prefill = 512;  // tokens of the prompt; 0: not measured
  uint32_t decode = 32;    // tokens of each sequence; 0: not measured
  std::vector<uint32_t> batches = {1, 4, 8, 16, 32};
  uint32_t repetitions = 3;
  bool json = false;
};

// Sets the limits of `options.worker` to just what the measurements need, without the prefix cache.
// INVALID_ARGUMENT, in words of the flags, for sizes that make no sense or exceed `context_length`.
absl::Status FitLimits(uint32_t context_length, BenchOptions& options);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_BENCH_BENCH_OPTIONS_H_
