// StepDescriptor: everything a worker needs for one step, explicitly. A worker is a function
// (weights, KV pages, block tables, StepDescriptor) -> StepResult; it never infers behaviour from a
// shape. Of block tables a step carries what changes (block_tables.h), so that its size follows
// from its tokens and not from the length of contexts.
//
// Example: sequence A decodes token 7 at position 20, sequence B prefills tokens 1 2 3 from
// position 0:
//   tokens 7 1 2 3 · positions 20 0 1 2 · query_offsets 0 1 4 · context_lens 21 3
// Wire form: codec.h. Plain data; every receiver runs Validate().
#ifndef TANDEM_COMMON_STEP_DESCRIPTOR_H_
#define TANDEM_COMMON_STEP_DESCRIPTOR_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"

namespace tandem::step {

enum class StepKind : uint32_t { kPrefill = 1, kDecode = 2, kMixed = 3 };

// Steps that are submitted and not yet answered, at most. Workers have a set of buffers for each.
inline constexpr uint32_t kPipelineDepth = 1;

// One sequence of the step.
struct SequenceEntry {
  uint32_t slot = 0;         // stable while the sequence runs; names its block tables
  uint32_t query_len = 0;    // tokens of this step, > 0
  uint32_t context_len = 0;  // cached tokens and this step's together
  bool operator==(const SequenceEntry&) const = default;
};

// How one sequence's block table in one KV group changes. Lengths are in blocks.
struct TableDelta {
  uint32_t length_before = 0;  // of the table so far; 0: a sequence that is new in its slot
  uint32_t length_after = 0;   // not less
  uint32_t first_live = 0;     // blocks before this one are behind the window: kNoBlock from now on

  // The first index that the step appends a block at.
  uint32_t first_appended() const { return std::max(length_before, first_live); }
  uint32_t num_appended() const { return length_after - first_appended(); }
  bool operator==(const TableDelta&) const = default;
};

// What the step changes in the block tables of one KV group, and where its tokens are written.
struct GroupDeltas {
  std::vector<TableDelta> tables;  // (S)
  std::vector<BlockId> blocks;     // appended: num_appended() of each sequence, in order
  // (T): block * block_size + offset, where token t's K and V go
  std::vector<int32_t> slot_mapping;
  bool operator==(const GroupDeltas&) const = default;
};

// What is wanted of a row; bits combine.
enum RowWant : uint32_t {
  kWantSample = 1,
  kWantTopLogprobs = 2,
  kWantLogprobsOf = 4,
  kWantLogits = 8,          // the whole row
  kWantSampleLogprob = 16,  // of the id that this step samples
};

// Bounds of what one row may ask for.
inline constexpr uint32_t kMaxTopLogprobs = 20;
inline constexpr uint32_t kMaxLogprobsOf = 16;
inline constexpr uint32_t kMaxRowTokens = 16;
// Ids that one step may ban, times its max_seqs: end ids of every sequence, with room to spare.
inline constexpr size_t kMaxBannedPerSeq = 1024;

struct RowRequest {
  uint32_t token = 0;  // index into tokens
  uint32_t wants = kWantSample;
  uint32_t max_tokens = 1;             // with kWantSample: 1 to so many tokens may come back
  uint32_t top_n = 0;                  // with kWantTopLogprobs, > 0
  std::vector<TokenId> logprobs_of{};  // with kWantLogprobsOf
  bool operator==(const RowRequest&) const = default;
};

// Sampling of one row that wants a sample, in row order.
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

// How many log-probabilities the row's result holds (RowResult::logprobs) for each of its tokens,
// or in all where it wants no sample.
inline uint32_t NumLogprobs(const RowRequest& row) {
  return ((row.wants & kWantSampleLogprob) != 0 ? 1 : 0) +
         static_cast<uint32_t>(row.logprobs_of.size()) + row.top_n;
}

struct StepDescriptor {
  StepId step_id;
  Epoch epoch;
  StepKind kind = StepKind::kMixed;
  uint32_t num_scheduled_tokens = 0;     // T
  uint32_t num_seqs_active = 0;          // S
  std::vector<TokenId> tokens;           // (T)
  std::vector<int32_t> positions;        // (T)
  std::vector<uint32_t> query_offsets;   // (S + 1)
  std::vector<SequenceEntry> sequences;  // (S)
  std::vector<GroupDeltas> groups;       // one per KV group
  std::vector<RowRequest> rows;
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

class BlockTables;

// Shapes, ranges, monotone offsets, table lengths that continue `tables`, block ids and slots
// within the pages, slots that agree with the block tables, kind that agrees with the lengths.
// INVALID_ARGUMENT saying what and where. `tables` are as all steps before this one left them.
absl::Status Validate(const StepDescriptor& step, const StepLimits& limits,
                      const BlockTables& tables);

// For logs and tests.
std::string DebugString(const StepDescriptor& step);

}  // namespace tandem::step

#endif  // TANDEM_COMMON_STEP_DESCRIPTOR_H_
