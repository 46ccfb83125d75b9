// The measurements of `tandem bench`, and the worker limits derived from them.
#ifndef TANDEM_CLIENT_BENCH_BENCH_OPTIONS_H_
#define TANDEM_CLIENT_BENCH_BENCH_OPTIONS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/config/server_config.h"

namespace tandem::client {

// Tokens of a decode measurement's prompts unless asked for: short, so that products dominate.
inline constexpr uint32_t kDecodeContext = 8;

struct BenchOptions {
  config::ServerConfig server;
  uint32_t prefill = 512;
  uint32_t decode = 32;
  uint32_t context = kDecodeContext;
  std::vector<uint32_t> batches = {1, 4, 8, 16, 32};
  uint32_t repetitions = 3;
  std::vector<uint32_t> draft_acceptance{};
  bool json = false;

  void ForEach(config::FieldList& visit) {
    visit.BeginSection("Measurements");
    visit(prefill, {.flag = "--prefill",
                    .help = "tokens of a prompt; 0: not measured",
                    .least = 0,
                    .most = 1 << 20});
    visit(decode, {.flag = "--decode",
                   .help = "tokens that a sequence decodes; 0: not measured",
                   .least = 0,
                   .most = 1 << 20});
    visit(context,
          {.flag = "--context",
           .help = "tokens of a sequence's prompt before it decodes; those of a batch are one step",
           .least = 1,
           .most = 1 << 20});
    visit(batches,
          {.flag = "--batch", .help = "sequences that decode together", .least = 1, .most = 4096});
    visit(repetitions, {.flag = "--repetitions,-r",
                        .help = "the median counts, after a warm-up",
                        .least = 1,
                        .most = 1000});
    visit(draft_acceptance, {.flag = "--draft-acceptance",
                             .help = "decode without guesses and with guesses of which this\n"
                                     "percentage is right, in turn; --device cpu only",
                             .least = 0,
                             .most = 100});
    visit(json, {.flag = "--json", .help = "for programs"});
  }
};

// Settings made by FitLimits, and those that a benchmark does not use.
inline constexpr std::string_view kNotOfBench[] = {"--lora-modules",
                                                   "--max-model-len",
                                                   "--max-num-seqs",
                                                   "--max-num-batched-tokens",
                                                   "--num-kv-blocks",
                                                   "--kv-cache-memory",
                                                   "--chunked-prefill-size",
                                                   "--scheduling-policy",
                                                   "--max-queued-requests",
                                                   "--enable-prefix-caching",
                                                   "--listen",
                                                   "--tls-cert",
                                                   "--tls-key",
                                                   "--tls-client-ca",
                                                   "--tokens",
                                                   "--insecure"};

// INVALID_ARGUMENT or OUT_OF_RANGE, in terms of the flags, for values that are invalid whatever the
// model.
absl::Status CheckOptions(BenchOptions options);

// Sets the limits of `options.server` to the needs of the measurements, without the prefix cache.
// INVALID_ARGUMENT, in terms of the flags, for sizes that exceed `context_length`. REQUIRES:
// CheckOptions(options) is OK.
absl::Status FitLimits(uint32_t context_length, BenchOptions& options);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_BENCH_BENCH_OPTIONS_H_
