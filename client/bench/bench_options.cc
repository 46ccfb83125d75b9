#include "client/bench/bench_options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace tandem::client {
namespace {

constexpr uint32_t kMostTokens = 1 << 20;
constexpr uint32_t kMostSequences = 4096;
constexpr uint32_t kMostRepetitions = 1000;

absl::Status Between(const char* flag, uint32_t found, uint32_t least, uint32_t most) {
  if (found >= least && found <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " is ", found, ", it must be from ", least, " to ", most));
}

absl::Status Check(const BenchOptions& options) {
  TANDEM_RETURN_IF_ERROR(Between("--prefill", options.prefill, 0, kMostTokens));
  TANDEM_RETURN_IF_ERROR(Between("--decode", options.decode, 0, kMostTokens));
  TANDEM_RETURN_IF_ERROR(Between("--repetitions", options.repetitions, 1, kMostRepetitions));
  TANDEM_RETURN_IF_ERROR(Between("--block-size", options.worker.block_size, 1, 4096));
  for (const uint32_t batch : options.batches) {
    TANDEM_RETURN_IF_ERROR(Between("--batch", batch, 1, kMostSequences));
  }
  if (options.prefill == 0 && (options.decode == 0 || options.batches.empty())) {
    return absl::InvalidArgumentError("there is nothing to measure: --prefill and --decode are 0");
  }
  return absl::OkStatus();
}

absl::Status CheckLength(const char* what, uint32_t tokens, uint32_t context_length) {
  if (tokens <= context_length) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " needs a context of ", tokens,
                                                 " tokens, the model has ", context_length));
}

uint32_t Blocks(uint32_t tokens, uint32_t block_size) {
  return (tokens + block_size - 1) / block_size;
}

}  // namespace

absl::Status FitLimits(uint32_t context_length, BenchOptions& options) {
  TANDEM_RETURN_IF_ERROR(Check(options));
  const uint32_t batch = options.decode == 0 || options.batches.empty()
                             ? 0
                             : *std::max_element(options.batches.begin(), options.batches.end());
  // Each measurement's prompt also draws one token, which ends the prefill.
  const uint32_t prefill_len = options.prefill == 0 ? 0 : options.prefill + 1;
  const uint32_t decode_len = batch == 0 ? 0 : kDecodeContext + 1 + options.decode;
  TANDEM_RETURN_IF_ERROR(CheckLength("--prefill", prefill_len, context_length));
  TANDEM_RETURN_IF_ERROR(CheckLength("--decode", decode_len, context_length));

  coordinator::WorkerOptions& worker = options.worker;
  worker.enable_prefix_caching = false;
  worker.max_model_len = std::max(prefill_len, decode_len);
  worker.max_num_seqs = std::max(batch, 1u);
  worker.max_num_batched_tokens = std::max(options.prefill, worker.max_num_seqs * kDecodeContext);
  worker.chunked_prefill_size = 0;
  worker.num_kv_blocks = std::max(Blocks(prefill_len, worker.block_size),
                                  batch * Blocks(decode_len, worker.block_size));
  return absl::OkStatus();
}

}  // namespace tandem::client
