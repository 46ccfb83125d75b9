// StepDescriptor: everything a worker needs for one step, explicitly. A worker is a function
// (weights, KV pages, block tables, StepDescriptor) -> StepResult; it never infers behaviour from a
// shape. A step carries only changes of block tables (block_tables.h), so that its size depends on
// its tokens and not on the context lengths.
//
// Example: sequence A decodes token 7 at position 20, sequence B prefills tokens 1 2 3 from
// position 0:
//   tokens 7 1 2 3 · positions 20 0 1 2 · query_offsets 0 1 4 · context_lens 21 3
// Wire form: codec.h. Plain data; every receiver runs Validate().
#ifndef TANDEM_COMMON_STEP_DESCRIPTOR_H_
#define TANDEM_COMMON_STEP_DESCRIPTOR_H_

#include <algorithm>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/base/limits.h"
#include "common/kv/snapshots.h"
#include "common/step/limits.h"
#include "common/step/token_mask.h"

namespace tandem::step {

enum class StepKind : uint32_t { kPrefill = 1, kDecode = 2, kMixed = 3 };

// The maximum number of steps in flight. Workers have host buffers for each.
inline constexpr uint32_t kPipelineDepth = 2;

// One sequence of the step.
struct SequenceEntry {
  uint32_t slot = 0;         // stable while the sequence runs; names its block tables
  uint32_t query_len = 0;    // tokens of this step, > 0
  uint32_t context_len = 0;  // cached tokens and this step's together
  // Of models with recurrent states. The snapshot that the state begins the step as, instead of the
  // slot's; and the one that becomes the state after the first `save_after` of the step's tokens.
  kv::SnapshotId load_snapshot = kv::kNoSnapshot;
  kv::SnapshotId save_snapshot = kv::kNoSnapshot;
  uint32_t save_after = 0;  // > 0 with save_snapshot
  // Its last tokens that the workers guess in this step, where zeros stand.
  // docs/decisions/0029-draft-models.md
  uint32_t num_drafts = 0;
  uint32_t adapter = 0;  // 1 + its adapter's number among --lora-modules; 0: the model alone
  bool operator==(const SequenceEntry&) const = default;
};

// The change of one sequence's block table in one KV group. Lengths are in blocks.
struct TableDelta {
  uint32_t length_before = 0;  // of the table so far; 0: a sequence that is new in its slot
  uint32_t length_after = 0;   // not less
  uint32_t first_live = 0;     // blocks before this one are behind the window: kNoBlock from now on

  // The first index at which the step appends a block.
  uint32_t first_appended() const { return std::max(length_before, first_live); }
  uint32_t num_appended() const { return length_after - first_appended(); }
  bool operator==(const TableDelta&) const = default;
};

// The step's changes of one KV group's block tables, and its slot mapping.
struct GroupDeltas {
  std::vector<TableDelta> tables;  // (S)
  std::vector<BlockId> blocks;     // appended: num_appended() of each sequence, in order
  // (T): slot mapping: block * block_size + offset of token t's K and V
  std::vector<int32_t> slot_mapping;
  bool operator==(const GroupDeltas&) const = default;
};

// The outputs requested for a row; bits combine.
enum RowWant : uint32_t {
  kWantSample = 1,
  kWantTopLogprobs = 2,
  kWantLogprobsOf = 4,
  kWantLogits = 8,          // the whole row
  kWantSampleLogprob = 16,  // of the id that this step samples
  kWantGuess = 32,          // with kWantSample: what the workers guess that id to be
};

// A token that was not known yet when the step was built: the previous step of the epoch draws it.
// docs/decisions/0024-token-references.md
struct TokenReference {
  uint32_t token = 0;   // index into tokens, where a 0 stands; the last token of its sequence
  uint32_t sample = 0;  // index into the previous step's `sampling`
  bool operator==(const TokenReference&) const = default;
};

// Limits of the requests of one row.
inline constexpr uint32_t kMaxLogprobsOf = 16;
inline constexpr uint32_t kMaxRowTokens = 16;

struct RowRequest {
  uint32_t token = 0;  // index into tokens
  uint32_t wants = kWantSample;
  uint32_t max_tokens = 1;             // with kWantSample: 1 to max_tokens tokens are returned
  uint32_t top_n = 0;                  // with kWantTopLogprobs, > 0
  std::vector<TokenId> logprobs_of{};  // with kWantLogprobsOf
  bool operator==(const RowRequest&) const = default;
};

// What becomes of one id's logit before anything is drawn: bias is added, then a positive result is
// divided by `repetition` and any other multiplied with it, then `penalty` is subtracted.
struct LogitAdjustment {
  TokenId id = 0;
  float bias = 0.0f;  // -inf: the id is never drawn
  float repetition = 1.0f;
  float penalty = 0.0f;
  bool operator==(const LogitAdjustment&) const = default;
};

// Sampling parameters of one row with kWantSample, in row order. kernels/ops/sample.h says what
// they mean.
struct RowSampling {
  float temperature = 1.0f;
  float top_p = 1.0f;
  float min_p = 0.0f;
  int32_t top_k = 0;
  uint64_t seed = 0;
  uint64_t position = 0;  // of the token to draw
  float typical_p = 1.0f;
  float xtc_probability = 0.0f;
  float xtc_threshold = 0.1f;
  std::vector<LogitAdjustment> adjustments{};  // ascending by id; an id that is not here stays
  TokenMask allowed{};                         // the only ids that may be drawn; empty: all
  bool operator==(const RowSampling&) const = default;
};

// As id:+bias/repetition-penalty.
std::ostream& operator<<(std::ostream& out, const LogitAdjustment& adjustment);

// How many log-probabilities the row's result holds (RowResult::logprobs) for each of its tokens,
// or in total if it requests no sample.
inline uint32_t NumLogprobs(const RowRequest& row) {
  return ((row.wants & kWantSampleLogprob) != 0 ? 1 : 0) +
         static_cast<uint32_t>(row.logprobs_of.size()) + row.top_n;
}

// Consecutive tokens of one sequence, [begin, end), the sum of whose hidden states is wanted: the
// model's output after the final norm, before the head.
struct PoolRequest {
  uint32_t begin = 0;  // indices into tokens
  uint32_t end = 0;
  bool operator==(const PoolRequest&) const = default;
};

struct StepDescriptor {
  StepId step_id;
  Epoch epoch;
  StepKind kind = StepKind::kMixed;
  uint32_t num_scheduled_tokens = 0;  // T
  uint32_t num_seqs_active = 0;       // S
  // The draft model or head computes none of the step's tokens: nothing is guessed for any of its
  // sequences from here on.
  bool skips_guesser = false;
  std::vector<TokenId> tokens;           // (T)
  std::vector<int32_t> positions;        // (T)
  std::vector<uint32_t> query_offsets;   // (S + 1)
  std::vector<SequenceEntry> sequences;  // (S)
  std::vector<GroupDeltas> groups;       // one per KV group
  std::vector<RowRequest> rows;
  std::vector<RowSampling> sampling;       // one per row with kWantSample
  std::vector<TokenReference> references;  // ascending by token
  std::vector<PoolRequest> pools;          // ascending, at most one per sequence

  // Index of the token that the drafts of sequence `s` follow; its last one if it has none.
  uint32_t TokenBeforeDrafts(size_t s) const {
    return query_offsets[s + 1] - sequences[s].num_drafts - 1;
  }
  bool operator==(const StepDescriptor&) const = default;
};

class BlockTables;

// Shapes, ranges, monotone offsets, table lengths that continue `tables`, block ids and slots
// within the pages, slots that agree with the block tables, kind that agrees with the lengths,
// references to tokens that the previous step draws for the same slot and position.
// INVALID_ARGUMENT with what and where. `tables`: the state after all previous steps.
absl::Status Validate(const StepDescriptor& step, const StepLimits& limits,
                      const BlockTables& tables);

// For logs and tests.
std::string DebugString(const StepDescriptor& step);

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_DESCRIPTOR_H_
