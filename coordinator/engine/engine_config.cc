#include "coordinator/engine/engine_config.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/step/codec.h"

namespace tandem::coordinator {
namespace {

// A row with the largest possible request.
step::RowRequest LargestRow(uint32_t wants) {
  step::RowRequest row{.wants = wants | step::kWantTopLogprobs, .top_n = kMaxTopLogprobs};
  if (wants & step::kWantLogprobsOf) row.logprobs_of = {0};
  return row;
}

// The largest result of samples alone.
size_t SamplesBytes(const EngineConfig& config) {
  step::StepDescriptor step;
  step.rows.assign(config.scheduler.MostSamples(),
                   LargestRow(step::kWantSample | step::kWantSampleLogprob | step::kWantGuess));
  return step::MaxResultBytes(step, config.vocab_size, config.hidden_size);
}

size_t ScoredRowBytes(const EngineConfig& config) {
  return step::MaxRowBytes(LargestRow(step::kWantLogprobsOf), config.vocab_size);
}

}  // namespace

absl::Status EngineConfig::Validate() const {
  TANDEM_RETURN_IF_ERROR(scheduler.Validate());
  TANDEM_RETURN_IF_ERROR(kv_cache.Validate());
  if (pipeline_depth == 0) return absl::InvalidArgumentError("the pipeline has depth 0");
  if (workers_guess && scheduler.max_draft_rows > step::kMaxDraftRows) {
    return absl::InvalidArgumentError(absl::StrCat(scheduler.max_draft_rows,
                                                   " rows of drafts that workers guess, at most ",
                                                   step::kMaxDraftRows, " fit"));
  }
  if (vocab_size == 0) return absl::InvalidArgumentError("the vocabulary is empty");
  if (MaxScoredTokens() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max-num-seqs ", scheduler.max_num_seqs, ": the log-probabilities of a step may take ",
        SamplesBytes(*this) + ScoredRowBytes(*this), " bytes, at most ", max_result_bytes,
        " fit (--max-result-bytes)"));
  }
  return absl::OkStatus();
}

uint32_t EngineConfig::MaxScoredTokens() const {
  const size_t others = SamplesBytes(*this) + step::PooledBytes(MaxPools(), hidden_size);
  if (others >= max_result_bytes) return 0;
  const uint64_t rows = (max_result_bytes - others) / ScoredRowBytes(*this);
  return static_cast<uint32_t>(std::min<uint64_t>(rows, scheduler.max_num_batched_tokens));
}

uint32_t EngineConfig::MaxPools() const {
  const size_t samples = SamplesBytes(*this);
  if (hidden_size == 0 || samples >= max_result_bytes) return 0;
  const uint64_t fit = (max_result_bytes - samples) / 2 / step::PooledBytes(1, hidden_size);
  return static_cast<uint32_t>(std::min<uint64_t>({fit, scheduler.max_num_seqs, step::kMaxPools}));
}

}  // namespace tandem::coordinator
