// StepDescriptor: everything a worker needs for one step, explicitly and in full. A worker is a
// function (weights, KV pages, StepDescriptor) -> StepResult; it never infers behaviour from a
// shape.
//
// Example: sequence A decodes token 7 at position 20, sequence B prefills tokens 1 2 3 from
// position 0:
//   tokens 7 1 2 3 · positions 20 0 1 2 · query_offsets 0 1 4 · context_lens 21 3
// Wire form: codec.h. Plain data; Validate() is run by whoever receives one.
#ifndef TANDEM_COMMON_STEP_DESCRIPTOR_H_
#define TANDEM_COMMON_STEP_DESCRIPTOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"

namespace tandem::step {

enum class StepKind : uint32_t { kPrefill = 1, kDecode = 2, kMixed = 3 };

// A token is an id (>= 0), or "row j of the previous step's samples" (-1 - j).
constexpr TokenId PreviousRow(uint32_t row) { return -1 - static_cast<TokenId>(row); }

// One sequence of the step.
struct SequenceEntry {
  uint32_t slot = 0;         // stable while the sequence runs
  int32_t adapter = -1;      // LoRA adapter; -1: none
  uint32_t query_len = 0;    // tokens of this step, > 0
  uint32_t context_len = 0;  // cached tokens and this step's together
  bool operator==(const SequenceEntry&) const = default;
};

// Block tables and slots of one KV group.
struct GroupTables {
  std::vector<uint32_t> table_offsets;  // (S + 1) into blocks
  // Sequence s: blocks[table_offsets[s], table_offsets[s+1]); kNoBlock where a window has left.
  std::vector<BlockId> blocks;
  std::vector<int32_t>
      slot_mapping;  // (T): block * block_size + offset, where token t's K and V go
  bool operator==(const GroupTables&) const = default;
};

// What is wanted of a row; bits combine.
enum RowWant : uint32_t {
  kWantSample = 1,
  kWantTopLogprobs = 2,
  kWantLogprobsOf = 4,
  kWantLogits = 8,  // the whole row
  kWantHidden = 16,
  kWantSampleLogprob = 32,  // of the id that this step samples
};

// Bounds of what one row may ask for.
inline constexpr uint32_t kMaxTopLogprobs = 20;
inline constexpr uint32_t kMaxLogprobsOf = 16;

struct RowRequest {
  uint32_t token = 0;  // index into tokens
  uint32_t wants = kWantSample;
  uint32_t top_n = 0;                  // with kWantTopLogprobs, > 0
  std::vector<TokenId> logprobs_of{};  // with kWantLogprobsOf
  bool operator==(const RowRequest&) const = default;
};

// Sampling of one row that wants a sample, in row order. A section of its own, which may follow in
// a second frame.
struct RowSampling {
  float temperature = 1.0f;
  float top_p = 1.0f;
  float min_p = 0.0f;
  int32_t top_k = 0;
  uint64_t seed = 0;
  uint64_t position = 0;          // of the token that is drawn
  std::vector<TokenId> banned{};  // never drawn (min_tokens)
  bool operator==(const RowSampling&) const = default;
};

// How many log-probabilities the row's result holds (RowResult::logprobs).
inline uint32_t NumLogprobs(const RowRequest& row) {
  return ((row.wants & kWantSampleLogprob) != 0 ? 1 : 0) +
         static_cast<uint32_t>(row.logprobs_of.size()) + row.top_n;
}

struct StepDescriptor {
  StepId step_id;
  Epoch epoch;
  uint32_t model_index = 0;
  StepKind kind = StepKind::kMixed;
  uint32_t num_scheduled_tokens = 0;     // T
  uint32_t num_seqs_active = 0;          // S
  std::vector<TokenId> tokens;           // (T)
  std::vector<int32_t> positions;        // (T)
  std::vector<uint32_t> query_offsets;   // (S + 1)
  std::vector<SequenceEntry> sequences;  // (S)
  std::vector<GroupTables> groups;       // one per KV group
  std::vector<RowRequest> rows;
  // False: the sampling section follows in a second frame with the same step id.
  bool has_sampling = true;
  std::vector<RowSampling> sampling;  // one per row that wants a sample
  bool operator==(const StepDescriptor&) const = default;
};

// What a receiver knows and checks a descriptor against.
struct StepLimits {
  uint32_t max_tokens = 0;
  uint32_t max_seqs = 0;
  uint32_t max_model_len = 0;
  uint32_t vocab_size = 0;
  uint32_t block_size = 0;
  std::vector<uint32_t> num_blocks;  // per KV group
  std::vector<uint32_t> windows;     // per KV group: tokens a query sees, 0 for all; empty: all 0
  size_t max_result_bytes = 0;       // what a StepResult may take on the wire
};

// Shapes, ranges, monotone offsets, block ids and slots within the pages, slots that agree with the
// block tables, kind that agrees with the lengths. INVALID_ARGUMENT saying what and where;
// UNIMPLEMENTED for what this version does not serve (references to the previous step, adapters,
// hidden states, model index > 0).
absl::Status Validate(const StepDescriptor& step, const StepLimits& limits);
// The part of Validate that looks at the sampling section: for a step whose sampling came in a
// second frame.
absl::Status ValidateSampling(const StepDescriptor& step, const StepLimits& limits);

// For logs and tests.
std::string DebugString(const StepDescriptor& step);

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_DESCRIPTOR_H_
