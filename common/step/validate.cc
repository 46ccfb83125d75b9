// Validate: runs on every step of every rank; its cost is linear in the step's tokens and appended
// blocks.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/kv/blocks.h"
#include "common/step/block_tables.h"
#include "common/step/codec.h"
#include "common/step/descriptor.h"
#include "common/step/invalid.h"
#include "common/step/sampling_ranges.h"
#include "common/step/token_mask.h"
#include "common/step/validate_drafts.h"
#include "common/step/validate_pools.h"
#include "common/step/validate_references.h"
#include "common/step/validate_snapshots.h"

namespace tandem::step {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

absl::Status CheckSize(const char* what, size_t found, size_t needed) {
  if (found == needed) return absl::OkStatus();
  return Invalid(found, " ", what, ", needed ", needed);
}

absl::Status ValidateShape(const StepDescriptor& step, const StepLimits& limits) {
  const size_t tokens = step.num_scheduled_tokens;
  const size_t seqs = step.num_seqs_active;
  if (step.step_id.value == 0) return Invalid("step id is 0");
  if (tokens == 0 || tokens > limits.max_tokens) {
    return Invalid(tokens, " scheduled tokens are not in 1..", limits.max_tokens);
  }
  if (seqs == 0 || seqs > limits.max_seqs) {
    return Invalid(seqs, " sequences are not in 1..", limits.max_seqs);
  }
  TANDEM_RETURN_IF_ERROR(CheckSize("tokens", step.tokens.size(), tokens));
  TANDEM_RETURN_IF_ERROR(CheckSize("positions", step.positions.size(), tokens));
  TANDEM_RETURN_IF_ERROR(CheckSize("query offsets", step.query_offsets.size(), seqs + 1));
  TANDEM_RETURN_IF_ERROR(CheckSize("sequences", step.sequences.size(), seqs));
  return CheckSize("KV groups", step.groups.size(), limits.num_blocks.size());
}

absl::Status ValidateTokens(const StepDescriptor& step, const StepLimits& limits) {
  for (size_t t = 0; t < step.tokens.size(); ++t) {
    if (static_cast<uint32_t>(step.tokens[t]) < limits.vocab_size) continue;
    return Invalid("token ", t, " has id ", step.tokens[t], ", the vocabulary ends at ",
                   limits.vocab_size);
  }
  return absl::OkStatus();
}

absl::Status ValidateSequence(const StepDescriptor& step, const StepLimits& limits, size_t s) {
  const SequenceEntry& seq = step.sequences[s];
  const uint32_t begin = step.query_offsets[s];
  if (seq.slot >= limits.max_seqs) {
    return Invalid("sequence ", s, " has slot ", seq.slot, ", needed below ", limits.max_seqs);
  }
  if (seq.query_len == 0) return Invalid("sequence ", s, " has no tokens");
  // `begin` is at most T here: ValidateSequences checks the offsets in order.
  if (seq.query_len > step.tokens.size() - begin ||
      step.query_offsets[s + 1] != begin + seq.query_len) {
    return Invalid("sequence ", s, " of ", seq.query_len, " tokens has query offsets ", begin, "..",
                   step.query_offsets[s + 1]);
  }
  if (seq.context_len < seq.query_len || seq.context_len > limits.max_model_len) {
    return Invalid("sequence ", s, " has context length ", seq.context_len, ", needed ",
                   seq.query_len, "..", limits.max_model_len);
  }
  if (seq.adapter > limits.num_adapters) {
    return Invalid("sequence ", s, " has adapter ", seq.adapter, ", there are ",
                   limits.num_adapters);
  }
  if (step.kind == StepKind::kDecode && seq.query_len != 1) {
    return Invalid("sequence ", s, " has ", seq.query_len, " tokens in a decode step");
  }
  const uint32_t first = seq.context_len - seq.query_len;
  for (uint32_t i = 0; i < seq.query_len; ++i) {
    if (static_cast<uint32_t>(step.positions[begin + i]) != first + i) {
      return Invalid("token ", begin + i, " of sequence ", s, " has position ",
                     step.positions[begin + i], ", needed ", first + i);
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateSequences(const StepDescriptor& step, const StepLimits& limits) {
  if (step.query_offsets[0] != 0) return Invalid("query offsets begin at ", step.query_offsets[0]);
  std::vector<bool> slot_used(limits.max_seqs);
  for (size_t s = 0; s < step.sequences.size(); ++s) {
    TANDEM_RETURN_IF_ERROR(ValidateSequence(step, limits, s));
    const uint32_t slot = step.sequences[s].slot;
    if (slot_used[slot]) return Invalid("sequence ", s, " has slot ", slot, ", which is taken");
    slot_used[slot] = true;
  }
  if (step.query_offsets.back() != step.tokens.size()) {
    return Invalid("query offsets end at ", step.query_offsets.back(), ", there are ",
                   step.tokens.size(), " tokens");
  }
  return absl::OkStatus();
}

// One KV group of a step whose sequences are valid.
class GroupCheck {
 public:
  GroupCheck(const StepDescriptor& step, const StepLimits& limits, const BlockTables& tables,
             size_t group)
      : step_(step),
        limits_(limits),
        tables_(tables),
        group_(group),
        deltas_(step.groups[group]),
        num_blocks_(limits.num_blocks[group]),
        window_(group < limits.windows.size() ? limits.windows[group] : kv::Window()) {}

  absl::Status Run() {
    TANDEM_RETURN_IF_ERROR(
        CheckSize("block table deltas", deltas_.tables.size(), step_.sequences.size()));
    TANDEM_RETURN_IF_ERROR(CheckSize("slots", deltas_.slot_mapping.size(), step_.tokens.size()));
    size_t begin = 0;  // of the sequence's blocks
    for (size_t s = 0; s < step_.sequences.size(); ++s) {
      TANDEM_RETURN_IF_ERROR(CheckLengths(s));
      TANDEM_RETURN_IF_ERROR(CheckWindow(s));
      const uint32_t count = deltas_.tables[s].num_appended();
      if (count > deltas_.blocks.size() - begin) {
        return Fail(deltas_.blocks.size(), " appended blocks, needed at least ", begin + count);
      }
      TANDEM_RETURN_IF_ERROR(CheckBlocks(s, begin));
      TANDEM_RETURN_IF_ERROR(CheckSlots(s, deltas_.blocks.data() + begin));
      begin += count;
    }
    if (begin != deltas_.blocks.size()) {
      return Fail(deltas_.blocks.size(), " appended blocks, needed ", begin);
    }
    return CheckWrittenOnce();
  }

 private:
  template <typename... Args>
  absl::Status Fail(const Args&... args) const {
    return Invalid("KV group ", group_, ": ", args...);
  }

  // "the block table of sequence 3 (slot 7)".
  std::string TableName(size_t s) const {
    return absl::StrCat("the block table of sequence ", s, " (slot ", step_.sequences[s].slot, ")");
  }

  absl::Status CheckLengths(size_t s) const {
    const SequenceEntry& seq = step_.sequences[s];
    const TableDelta& delta = deltas_.tables[s];
    const size_t length = tables_.Table(group_, seq.slot).size();
    if (delta.length_before != 0 && delta.length_before != length) {
      return Fail(TableName(s), " has ", length, " blocks, needed ", delta.length_before,
                  " before the step");
    }
    const uint32_t needed = (seq.context_len - 1) / limits_.block_size + 1;
    const uint32_t least = std::max(needed, delta.length_before);
    if (delta.length_after >= least && delta.length_after <= tables_.max_length()) {
      return absl::OkStatus();
    }
    return Fail(TableName(s), " has ", delta.length_after, " blocks after the step, needed ", least,
                "..", tables_.max_length());
  }

  // Blocks at the front of the table may be missing if they are entirely before the window of this
  // step's first token, so that nothing reads them.
  absl::Status CheckWindow(size_t s) const {
    const SequenceEntry& seq = step_.sequences[s];
    const TableDelta& delta = deltas_.tables[s];
    const uint32_t first = seq.context_len - seq.query_len;
    const uint32_t sees_from = kv::WindowStart(window_, first);
    if (delta.first_live > sees_from / limits_.block_size) {
      return Fail(TableName(s), " lives from block ", delta.first_live, ", but position ", first,
                  " sees from position ", sees_from, " on, which is block ",
                  sees_from / limits_.block_size);
    }
    const uint32_t live = delta.length_before == 0 ? 0 : tables_.first_live(group_, seq.slot);
    if (delta.first_live >= live) return absl::OkStatus();
    return Fail(TableName(s), " lives from block ", delta.first_live, ", but the blocks before ",
                live, " were released");
  }

  absl::Status CheckBlocks(size_t s, size_t begin) const {
    const uint32_t count = deltas_.tables[s].num_appended();
    for (uint32_t i = 0; i < count; ++i) {
      const BlockId block = deltas_.blocks[begin + i];
      if (static_cast<uint32_t>(block) < num_blocks_) continue;
      return Fail("block ", deltas_.tables[s].first_appended() + i, " of sequence ", s, " is ",
                  block, ", needed 0..", int64_t{num_blocks_} - 1);
    }
    return absl::OkStatus();
  }

  // The slot mapping matches the block table; the written blocks are recorded.
  absl::Status CheckSlots(size_t s, const BlockId* appended) {
    const SequenceEntry& seq = step_.sequences[s];
    const std::span<const BlockId> table = tables_.Table(group_, seq.slot);
    const uint32_t first_appended = deltas_.tables[s].first_appended();
    const uint32_t first = seq.context_len - seq.query_len;
    const int64_t size = limits_.block_size;
    uint32_t i = 0;
    while (i < seq.query_len) {
      const uint32_t index = (first + i) / limits_.block_size;
      const BlockId block =
          index < first_appended ? table[index] : appended[index - first_appended];
      uint32_t offset = (first + i) % limits_.block_size;
      written_.emplace_back(block, static_cast<uint32_t>(s));
      for (; offset < limits_.block_size && i < seq.query_len; ++offset, ++i) {
        const uint32_t token = step_.query_offsets[s] + i;
        if (deltas_.slot_mapping[token] == block * size + offset) continue;
        return Fail("token ", token, " of sequence ", s, " has slot ", deltas_.slot_mapping[token],
                    ", its block table says ", block * size + offset);
      }
    }
    return absl::OkStatus();
  }

  // Two tokens in one slot would be a race; shared blocks are full and never written.
  absl::Status CheckWrittenOnce() {
    std::sort(written_.begin(), written_.end());
    for (size_t i = 1; i < written_.size(); ++i) {
      if (written_[i].first != written_[i - 1].first) continue;
      return Fail("block ", written_[i].first, " is written by sequences ", written_[i - 1].second,
                  " and ", written_[i].second);
    }
    return absl::OkStatus();
  }

  const StepDescriptor& step_;
  const StepLimits& limits_;
  const BlockTables& tables_;
  const size_t group_;
  const GroupDeltas& deltas_;
  const uint32_t num_blocks_;
  const kv::Window window_;
  std::vector<std::pair<BlockId, uint32_t>> written_;  // (block, sequence)
};

absl::Status ValidateRowLogprobs(const RowRequest& row, size_t r, const StepLimits& limits) {
  const bool wants_top = (row.wants & kWantTopLogprobs) != 0;
  const bool wants_ids = (row.wants & kWantLogprobsOf) != 0;
  if ((!wants_top && row.top_n != 0) || (!wants_ids && !row.logprobs_of.empty())) {
    return Invalid("row ", r, " names log-probabilities that it does not want");
  }
  const uint32_t most_top = std::min(kMaxTopLogprobs, limits.vocab_size);
  if (wants_top && (row.top_n == 0 || row.top_n > most_top)) {
    return Invalid("row ", r, " wants the top ", row.top_n, " log-probabilities, needed 1..",
                   most_top);
  }
  if (wants_ids && (row.logprobs_of.empty() || row.logprobs_of.size() > kMaxLogprobsOf)) {
    return Invalid("row ", r, " wants the log-probabilities of ", row.logprobs_of.size(),
                   " ids, needed 1..", kMaxLogprobsOf);
  }
  for (TokenId id : row.logprobs_of) {
    if (id >= 0 && static_cast<uint32_t>(id) < limits.vocab_size) continue;
    return Invalid("row ", r, " wants the log-probability of id ", id, ", the vocabulary ends at ",
                   limits.vocab_size);
  }
  if ((row.wants & kWantSampleLogprob) != 0 && (row.wants & kWantSample) == 0) {
    return Invalid("row ", r, " wants the log-probability of a sample, and no sample");
  }
  return absl::OkStatus();
}

absl::Status ValidateRow(const StepDescriptor& step, const StepLimits& limits, size_t r) {
  constexpr uint32_t kKnown = kWantSample | kWantTopLogprobs | kWantLogprobsOf | kWantLogits |
                              kWantSampleLogprob | kWantGuess;
  const RowRequest& row = step.rows[r];
  if (row.token >= step.tokens.size() || (r > 0 && row.token <= step.rows[r - 1].token)) {
    return Invalid("row ", r, " is of token ", row.token, ", needed ascending below ",
                   step.tokens.size());
  }
  if (row.wants == 0 || (row.wants & ~kKnown) != 0) {
    return Invalid("row ", r, " wants ", row.wants);
  }
  if (row.max_tokens == 0 || row.max_tokens > kMaxRowTokens) {
    return Invalid("row ", r, " takes up to ", row.max_tokens, " tokens, needed 1..",
                   kMaxRowTokens);
  }
  return ValidateRowLogprobs(row, r, limits);
}

absl::Status ValidateRows(const StepDescriptor& step, const StepLimits& limits) {
  for (size_t r = 0; r < step.rows.size(); ++r) {
    TANDEM_RETURN_IF_ERROR(ValidateRow(step, limits, r));
  }
  const size_t bytes = MaxResultBytes(step, limits.vocab_size, limits.hidden_size);
  if (bytes > limits.max_result_bytes) {
    return Invalid("the result may take ", bytes, " bytes, at most ", limits.max_result_bytes,
                   " fit");
  }
  return absl::OkStatus();
}

// Ids rise, so none occurs twice. Written so that NaN fails.
absl::Status ValidateAdjustments(std::span<const LogitAdjustment> adjustments, size_t r,
                                 const StepLimits& limits) {
  if (adjustments.size() > kMaxRowAdjustments) {
    return Invalid("sampling ", r, " adjusts ", adjustments.size(), " logits, at most ",
                   kMaxRowAdjustments, " fit");
  }
  TokenId last = -1;
  for (const LogitAdjustment& one : adjustments) {
    if (one.id <= last || static_cast<uint32_t>(one.id) >= limits.vocab_size) {
      return Invalid("sampling ", r, " adjusts the logit of id ", one.id, " after ", last,
                     ", needed rising ids below ", limits.vocab_size);
    }
    if (!(one.bias < kInfinity) || !(one.repetition > 0 && one.repetition < kInfinity) ||
        !std::isfinite(one.penalty)) {
      return Invalid("sampling ", r, " adjusts the logit of id ", one.id, " by bias ", one.bias,
                     ", repetition ", one.repetition, ", penalty ", one.penalty);
    }
    last = one.id;
  }
  return absl::OkStatus();
}

// Otherwise no id could be drawn, or one that does not exist.
absl::Status ValidateMask(const TokenMask& mask, size_t r, const StepLimits& limits) {
  if (mask.empty()) return absl::OkStatus();
  if (limits.vocab_size > kMaxMaskedVocabulary) {
    return Invalid("sampling ", r, " has a mask of ", limits.vocab_size, " ids, at most ",
                   kMaxMaskedVocabulary, " fit");
  }
  TANDEM_RETURN_IF_ERROR(CheckSize(absl::StrCat("mask words of sampling ", r).c_str(), mask.size(),
                                   MaskWords(limits.vocab_size)));
  const uint32_t in_last = limits.vocab_size % kIdsPerMaskWord;
  if (in_last > 0 && mask.back() >> in_last != 0) {
    return Invalid("the mask of sampling ", r, " has ids from the vocabulary's end on, ",
                   limits.vocab_size);
  }
  if (IsEmpty(mask)) return Invalid("the mask of sampling ", r, " has no id");
  return absl::OkStatus();
}

absl::Status ValidateRowSampling(const RowSampling& row, size_t r, const StepLimits& limits) {
  const SamplingFilters filters{.temperature = row.temperature,
                                .top_p = row.top_p,
                                .min_p = row.min_p,
                                .top_k = row.top_k,
                                .typical_p = row.typical_p,
                                .xtc_probability = row.xtc_probability,
                                .xtc_threshold = row.xtc_threshold};
  if (absl::Status ranges = CheckSamplingRanges(filters); !ranges.ok()) {
    return Invalid("sampling ", r, ": ", ranges.message());
  }
  if (row.position > limits.max_model_len) {
    return Invalid("sampling ", r, " has position ", row.position, ", the context ends at ",
                   limits.max_model_len);
  }
  TANDEM_RETURN_IF_ERROR(ValidateMask(row.allowed, r, limits));
  return ValidateAdjustments(row.adjustments, r, limits);
}

absl::Status ValidateSampling(const StepDescriptor& step, const StepLimits& limits) {
  const auto wanted = std::count_if(step.rows.begin(), step.rows.end(), [](const RowRequest& row) {
    return (row.wants & kWantSample) != 0;
  });
  TANDEM_RETURN_IF_ERROR(CheckSize("samplings", step.sampling.size(), wanted));
  if (step.sampling.size() > limits.MaxSamples()) {
    return Invalid(step.sampling.size(), " samples are wanted, at most ", limits.MaxSamples(),
                   " are planned for");
  }
  for (size_t r = 0; r < step.sampling.size(); ++r) {
    TANDEM_RETURN_IF_ERROR(ValidateRowSampling(step.sampling[r], r, limits));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const StepDescriptor& step, const StepLimits& limits,
                      const BlockTables& tables) {
  if (limits.block_size == 0) return Invalid("the limits have block size 0");
  if (limits.num_blocks.size() > model::kMaxKvGroups) {
    return Invalid("the limits have ", limits.num_blocks.size(), " KV groups, at most ",
                   model::kMaxKvGroups);
  }
  TANDEM_RETURN_IF_ERROR(ValidateShape(step, limits));
  TANDEM_RETURN_IF_ERROR(ValidateTokens(step, limits));
  TANDEM_RETURN_IF_ERROR(ValidateSequences(step, limits));
  size_t num_appended = 0;
  for (size_t g = 0; g < step.groups.size(); ++g) {
    TANDEM_RETURN_IF_ERROR(GroupCheck(step, limits, tables, g).Run());
    num_appended += step.groups[g].blocks.size();
  }
  TANDEM_RETURN_IF_ERROR(ValidateSnapshots(step, limits));
  TANDEM_RETURN_IF_ERROR(ValidateReferences(step, tables));
  if (num_appended > limits.MaxAppendedBlocks()) {
    return Invalid(num_appended, " blocks are appended, at most ", limits.MaxAppendedBlocks(),
                   " fit");
  }
  TANDEM_RETURN_IF_ERROR(ValidateRows(step, limits));
  TANDEM_RETURN_IF_ERROR(ValidateDrafts(step, limits));
  TANDEM_RETURN_IF_ERROR(ValidatePools(step, limits));
  return ValidateSampling(step, limits);
}

}  // namespace tandem::step
