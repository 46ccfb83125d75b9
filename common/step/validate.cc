// Validate: runs on every step of every rank, so the long arrays (block tables) are checked by
// branch-free loops, and the place of a defect is looked for only once there is one.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/step/codec.h"
#include "common/step/descriptor.h"

namespace tandem::step {
namespace {

template <typename... Args>
absl::Status Invalid(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat("step: ", args...));
}

template <typename... Args>
absl::Status Unsupported(const Args&... args) {
  return absl::UnimplementedError(absl::StrCat("step: ", args..., " not supported"));
}

absl::Status CheckSize(const char* what, size_t found, size_t needed) {
  if (found == needed) return absl::OkStatus();
  return Invalid(found, " ", what, ", needed ", needed);
}

absl::Status ValidateShape(const StepDescriptor& step, const StepLimits& limits) {
  const size_t tokens = step.num_scheduled_tokens;
  const size_t seqs = step.num_seqs_active;
  if (step.step_id.value == 0) return Invalid("step id is 0");
  if (step.model_index > 0) return Unsupported("model index ", step.model_index, " is");
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
    if (step.tokens[t] < 0)
      return Unsupported("token ", t, " refers to the previous step: that is");
    if (static_cast<uint32_t>(step.tokens[t]) >= limits.vocab_size) {
      return Invalid("token ", t, " has id ", step.tokens[t], ", the vocabulary ends at ",
                     limits.vocab_size);
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateSequence(const StepDescriptor& step, const StepLimits& limits, size_t s) {
  const SequenceEntry& seq = step.sequences[s];
  const uint32_t begin = step.query_offsets[s];
  if (seq.adapter != -1)
    return Unsupported("sequence ", s, " has adapter ", seq.adapter, ": that is");
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
  GroupCheck(const StepDescriptor& step, const StepLimits& limits, size_t group)
      : step_(step),
        limits_(limits),
        group_(group),
        tables_(step.groups[group]),
        num_blocks_(limits.num_blocks[group]),
        window_(group < limits.windows.size() ? limits.windows[group] : 0) {}

  absl::Status Run() {
    const size_t seqs = step_.sequences.size();
    TANDEM_RETURN_IF_ERROR(
        CheckSize("block table offsets", tables_.table_offsets.size(), seqs + 1));
    TANDEM_RETURN_IF_ERROR(CheckSize("slots", tables_.slot_mapping.size(), step_.tokens.size()));
    if (tables_.table_offsets[0] != 0 || tables_.table_offsets.back() != tables_.blocks.size()) {
      return Fail("block table offsets run ", tables_.table_offsets[0], "..",
                  tables_.table_offsets.back(), " over ", tables_.blocks.size(), " blocks");
    }
    for (size_t s = 0; s < seqs; ++s) {
      TANDEM_RETURN_IF_ERROR(CheckTable(s));
      TANDEM_RETURN_IF_ERROR(CheckSlots(s));
    }
    return CheckWrittenOnce();
  }

 private:
  template <typename... Args>
  absl::Status Fail(const Args&... args) const {
    return Invalid("KV group ", group_, ": ", args...);
  }

  uint32_t Begin(size_t s) const { return tables_.table_offsets[s]; }

  absl::Status CheckTable(size_t s) const {
    const SequenceEntry& seq = step_.sequences[s];
    const uint32_t begin = Begin(s), end = tables_.table_offsets[s + 1];
    if (end < begin || end > tables_.blocks.size()) {
      return Fail("block table of sequence ", s, " runs ", begin, "..", end, " of ",
                  tables_.blocks.size());
    }
    const uint32_t size = limits_.block_size;
    const uint32_t needed = (seq.context_len - 1) / size + 1;
    const uint32_t most = (limits_.max_model_len - 1) / size + 1;
    if (end - begin < needed || end - begin > most) {
      return Fail("sequence ", s, " has ", end - begin, " blocks, needed ", needed, "..", most);
    }
    const uint32_t dead = DeadBlocks(seq);
    bool bad = false;
    for (uint32_t b = begin + dead; b < end; ++b) {
      bad |= static_cast<uint32_t>(tables_.blocks[b]) >= num_blocks_;
    }
    for (uint32_t b = begin; b < begin + dead; ++b) {
      bad |=
          static_cast<uint32_t>(tables_.blocks[b]) >= num_blocks_ && tables_.blocks[b] != kNoBlock;
    }
    return bad ? FindBadBlock(s, begin + dead) : absl::OkStatus();
  }

  // Blocks at the front of the table that lie wholly behind the window of this step's first token,
  // so that nothing reads them.
  uint32_t DeadBlocks(const SequenceEntry& seq) const {
    const uint32_t first = seq.context_len - seq.query_len;
    if (window_ == 0 || first < window_) return 0;
    return (first - window_ + 1) / limits_.block_size;
  }

  absl::Status FindBadBlock(size_t s, uint32_t alive) const {
    for (uint32_t b = Begin(s); b < tables_.table_offsets[s + 1]; ++b) {
      const BlockId block = tables_.blocks[b];
      if (static_cast<uint32_t>(block) < num_blocks_ || (block == kNoBlock && b < alive)) continue;
      if (block == kNoBlock) return MissingBlock(s, b - Begin(s));
      return Fail("block ", b - Begin(s), " of sequence ", s, " is ", block, ", needed 0..",
                  int64_t{num_blocks_} - 1);
    }
    return absl::OkStatus();
  }

  // A block was given back too early (or never given).
  absl::Status MissingBlock(size_t s, uint32_t index) const {
    const SequenceEntry& seq = step_.sequences[s];
    const uint32_t first = seq.context_len - seq.query_len;
    const uint32_t sees_from = window_ == 0 || first < window_ ? 0 : first - window_ + 1;
    return Fail("block ", index, " of sequence ", s, " is ", kNoBlock, " (none), but position ",
                first, " sees from position ", sees_from, " on, which is block ", DeadBlocks(seq));
  }

  // Every token goes where the block table says, and the blocks that are written are noted.
  absl::Status CheckSlots(size_t s) {
    const SequenceEntry& seq = step_.sequences[s];
    const uint32_t first = seq.context_len - seq.query_len;
    const int64_t size = limits_.block_size;
    uint32_t i = 0;
    while (i < seq.query_len) {
      const uint32_t index = (first + i) / limits_.block_size;
      const BlockId block = tables_.blocks[Begin(s) + index];
      uint32_t offset = (first + i) % limits_.block_size;
      written_.emplace_back(block, static_cast<uint32_t>(s));
      for (; offset < limits_.block_size && i < seq.query_len; ++offset, ++i) {
        const uint32_t token = step_.query_offsets[s] + i;
        if (tables_.slot_mapping[token] == block * size + offset) continue;
        return Fail("token ", token, " of sequence ", s, " has slot ", tables_.slot_mapping[token],
                    ", its block table says ", block * size + offset);
      }
    }
    return absl::OkStatus();
  }

  // Two tokens in one slot would race; shared blocks are full, so nobody writes to them.
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
  const size_t group_;
  const GroupTables& tables_;
  const uint32_t num_blocks_;
  const uint32_t window_;
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
                              kWantHidden | kWantSampleLogprob;
  const RowRequest& row = step.rows[r];
  if (row.token >= step.tokens.size() || (r > 0 && row.token <= step.rows[r - 1].token)) {
    return Invalid("row ", r, " is of token ", row.token, ", needed ascending below ",
                   step.tokens.size());
  }
  if (row.wants == 0 || (row.wants & ~kKnown) != 0) {
    return Invalid("row ", r, " wants ", row.wants);
  }
  if (row.wants & kWantHidden) return Unsupported("row ", r, " wants its hidden state: that is");
  return ValidateRowLogprobs(row, r, limits);
}

absl::Status ValidateRows(const StepDescriptor& step, const StepLimits& limits) {
  for (size_t r = 0; r < step.rows.size(); ++r) {
    TANDEM_RETURN_IF_ERROR(ValidateRow(step, limits, r));
  }
  const size_t bytes = MaxResultBytes(step, limits.vocab_size);
  if (bytes > limits.max_result_bytes) {
    return Invalid("the result may take ", bytes, " bytes, at most ", limits.max_result_bytes,
                   " fit");
  }
  return absl::OkStatus();
}

absl::Status ValidateRowSampling(const RowSampling& row, size_t r, const StepLimits& limits) {
  // Written so that NaN fails.
  if (!(row.temperature >= 0.0f) || !std::isfinite(row.temperature)) {
    return Invalid("sampling ", r, " has temperature ", row.temperature);
  }
  if (!(row.top_p > 0.0f && row.top_p <= 1.0f)) {
    return Invalid("sampling ", r, " has top_p ", row.top_p, ", needed in (0, 1]");
  }
  if (!(row.min_p >= 0.0f && row.min_p <= 1.0f)) {
    return Invalid("sampling ", r, " has min_p ", row.min_p, ", needed in [0, 1]");
  }
  if (row.top_k < 0) return Invalid("sampling ", r, " has top_k ", row.top_k, ", needed 0 or more");
  if (row.position > limits.max_model_len) {
    return Invalid("sampling ", r, " has position ", row.position, ", the context ends at ",
                   limits.max_model_len);
  }
  for (TokenId id : row.banned) {
    if (id < 0 || static_cast<uint32_t>(id) >= limits.vocab_size) {
      return Invalid("sampling ", r, " bans id ", id, ", the vocabulary ends at ",
                     limits.vocab_size);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateSampling(const StepDescriptor& step, const StepLimits& limits) {
  if (!step.has_sampling) {
    return CheckSize("samplings in a step that says it has none", step.sampling.size(), 0);
  }
  const auto wanted = std::count_if(step.rows.begin(), step.rows.end(), [](const RowRequest& row) {
    return (row.wants & kWantSample) != 0;
  });
  TANDEM_RETURN_IF_ERROR(CheckSize("samplings", step.sampling.size(), wanted));
  for (size_t r = 0; r < step.sampling.size(); ++r) {
    TANDEM_RETURN_IF_ERROR(ValidateRowSampling(step.sampling[r], r, limits));
  }
  return absl::OkStatus();
}

absl::Status Validate(const StepDescriptor& step, const StepLimits& limits) {
  if (limits.block_size == 0) return Invalid("the limits have block size 0");
  TANDEM_RETURN_IF_ERROR(ValidateShape(step, limits));
  TANDEM_RETURN_IF_ERROR(ValidateTokens(step, limits));
  TANDEM_RETURN_IF_ERROR(ValidateSequences(step, limits));
  for (size_t g = 0; g < step.groups.size(); ++g) {
    TANDEM_RETURN_IF_ERROR(GroupCheck(step, limits, g).Run());
  }
  TANDEM_RETURN_IF_ERROR(ValidateRows(step, limits));
  return ValidateSampling(step, limits);
}

}  // namespace tandem::step
