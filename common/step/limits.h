// StepLimits: what one step may hold, and so how large its frame can become. What Validate checks a
// descriptor against; both ends size their step channel by it. Plain data.
#ifndef TANDEM_COMMON_STEP_LIMITS_H_
#define TANDEM_COMMON_STEP_LIMITS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/kv/blocks.h"
#include "common/model/spec.h"

namespace tandem::config {
struct WorkerConfig;
}

namespace tandem::step {

// Block ids that newly admitted sequences bring to one step, over all KV groups: a long shared
// prefix is many at once. The first of a step may bring more.
inline constexpr uint32_t kMaxAdmittedBlocks = 1 << 16;
// Rows of a step with guessed tokens: up to 8 take about as long as one (kernels/cuda/gemv.h).
inline constexpr uint32_t kMaxDraftRows = 8;
// Pooled states of one step: of so many sequences, each takes 8 bytes per value of the hidden size.
inline constexpr uint32_t kMaxPools = 64;
// What a sequence may adjust logits by: ids that occur among its last tokens, biased ids, ids that
// end it, and last ids of banned sequences of ids.
inline constexpr uint32_t kMaxPenaltyWindow = 4096;
inline constexpr uint32_t kMaxLogitBiases = 1024;
inline constexpr uint32_t kMaxEndIds = 1024;
inline constexpr uint32_t kMaxBannedSequences = 576;
// Adjustments of one row, 16 bytes each (docs/decisions/0022-logit-adjustments.md).
inline constexpr size_t kMaxRowAdjustments =
    kMaxPenaltyWindow + kMaxLogitBiases + kMaxEndIds + kMaxBannedSequences;

// The largest vocabulary of which a row may name the only ids to draw, by a bit each.
inline constexpr uint32_t kMaxMaskedVocabulary = 1 << 19;

struct StepLimits {
  uint32_t max_tokens = 0;
  uint32_t max_seqs = 0;
  uint32_t max_model_len = 0;
  uint32_t vocab_size = 0;
  uint32_t hidden_size = 0;  // 0: no states are pooled
  uint32_t block_size = 0;
  std::vector<uint32_t> num_blocks{};  // per KV group
  std::vector<kv::Window> windows{};   // per KV group; empty: none has one
  // Of recurrent states; none: the model has no such states.
  std::optional<uint32_t> num_snapshots{};
  uint32_t num_adapters = 0;    // loaded
  bool workers_guess = false;   // by a draft model or the draft head
  size_t max_result_bytes = 0;  // the largest StepResult on the wire

  // What the configuration says; vocab_size, hidden_size, num_blocks, windows, num_snapshots and
  // workers_guess are the models' to add. REQUIRES: its max_model_len is resolved.
  static StepLimits Of(const config::WorkerConfig& config);

  // The most tokens that one step draws. Guesses are verified by several of one sequence, so few
  // sequences draw more than one each.
  uint32_t MaxSamples() const { return std::min(std::max(max_seqs, kMaxDraftRows), max_tokens); }
  // Recurrent states of one layer: the sequences' by slot, then the snapshots.
  uint32_t NumStates() const { return max_seqs + num_snapshots.value_or(0); }
  // Pooled states of one step.
  uint32_t MaxPools() const;
  // The most blocks of one sequence in one KV group.
  uint32_t MaxTableBlocks() const;
  // The most block ids that one step appends to block tables, over all KV groups.
  size_t MaxAppendedBlocks() const;
  // No descriptor that Validate accepts takes more on the wire. Independent of the model.
  size_t MaxDescriptorBytes() const;
  // The largest frame of the step channel, in either direction.
  size_t MaxFrameBytes() const;
  // INVALID_ARGUMENT in the words of the command line's flags where a frame could be larger than
  // any channel takes.
  absl::Status CheckFrameBytes() const;
};

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_LIMITS_H_
