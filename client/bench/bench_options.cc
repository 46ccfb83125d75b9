#include "client/bench/bench_options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/kv/blocks.h"
#include "common/step/limits.h"

namespace tandem::client {
namespace {

constexpr uint64_t kMostStepTokens = 1 << 20;  // as --max-num-batched-tokens

absl::Status CheckLength(const char* what, uint32_t tokens, uint32_t context_length) {
  if (tokens <= context_length) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " needs a context of ", tokens,
                                                 " tokens, the model has ", context_length));
}

}  // namespace

absl::Status CheckOptions(BenchOptions options) {
  config::FieldList fields;
  options.ForEach(fields);
  for (const config::Field& field : fields.All()) TANDEM_RETURN_IF_ERROR(field.Check());
  TANDEM_RETURN_IF_ERROR(config::Validate(options.server));
  if (options.prefill == 0 && (options.decode == 0 || options.batches.empty())) {
    return absl::InvalidArgumentError("there is nothing to measure: --prefill and --decode are 0");
  }
  if (!options.draft_acceptance.empty() &&
      options.server.scheduling.speculation != config::Speculation::kNgram) {
    return absl::InvalidArgumentError(
        absl::StrCat("--draft-acceptance is of guesses that the server makes, as --speculation "
                     "ngram; it is ",
                     config::NameOf(options.server.scheduling.speculation)));
  }
  // The guesses come from the answer without guesses. On a GPU the answer with them may differ from
  // it by rounding, and all guesses after that would be wrong.
  if (const config::Device device = options.server.worker.device.device;
      !options.draft_acceptance.empty() && device != config::Device::kCpu) {
    return absl::InvalidArgumentError(
        absl::StrCat("--draft-acceptance needs --device cpu, where an answer with guesses is the "
                     "same as without; it is ",
                     config::NameOf(device)));
  }
  return absl::OkStatus();
}

absl::Status FitLimits(uint32_t context_length, BenchOptions& options) {
  const uint32_t batch = options.decode == 0 || options.batches.empty()
                             ? 0
                             : *std::max_element(options.batches.begin(), options.batches.end());
  // Each measurement's prompt also samples one token, which ends the prefill.
  const uint32_t prefill_len = options.prefill == 0 ? 0 : options.prefill + 1;
  const uint32_t decode_len = batch == 0 ? 0 : options.context + 1 + options.decode;
  TANDEM_RETURN_IF_ERROR(CheckLength("--prefill", prefill_len, context_length));
  TANDEM_RETURN_IF_ERROR(CheckLength("--context with --decode", decode_len, context_length));

  // Steps with guesses need as many tokens as short prompts do.
  const uint64_t step_tokens = std::max<uint64_t>(
      {options.prefill, 1, uint64_t{batch} * std::max(options.context, kDecodeContext)});
  if (step_tokens > kMostStepTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch ", batch, " with --context ", options.context, " needs a step of ",
                     step_tokens, " tokens, at most ", kMostStepTokens));
  }

  config::WorkerConfig& worker = options.server.worker;
  const uint32_t block_size = worker.cache.block_size;
  options.server.scheduling.enable_prefix_caching = false;
  options.server.scheduling.chunked_prefill_size = 0;
  worker.model.spec.max_model_len = std::max(prefill_len, decode_len);
  worker.limits.max_num_seqs = std::max(batch, 1u);
  worker.limits.max_num_batched_tokens = static_cast<uint32_t>(step_tokens);
  worker.cache.num_kv_blocks = std::max(kv::BlocksFor(prefill_len, block_size),
                                        batch * kv::BlocksFor(decode_len, block_size));
  // Steps have drafts only while so many blocks are free.
  const config::Speculation speculation = options.server.scheduling.speculation;
  if (speculation != config::Speculation::kOff && speculation != config::Speculation::kAuto) {
    worker.cache.num_kv_blocks += worker.limits.max_num_seqs + step::kMaxDraftRows;
  }
  return absl::OkStatus();
}

}  // namespace tandem::client
