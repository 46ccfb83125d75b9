#include "common/step/descriptor.h"

#include <bit>
#include <numeric>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tandem::step {
namespace {

const char* KindName(StepKind kind) {
  switch (kind) {
    case StepKind::kPrefill:
      return "prefill";
    case StepKind::kDecode:
      return "decode";
    case StepKind::kMixed:
      return "mixed";
  }
  return "unknown";
}

// Long arrays are truncated to keep a log line short.
template <typename T>
std::string Join(const std::vector<T>& values) {
  constexpr size_t kShown = 16;
  const size_t shown = std::min(values.size(), kShown);
  std::string text =
      absl::StrJoin(values.begin(), values.begin() + shown, " ", absl::StreamFormatter());
  if (shown < values.size()) absl::StrAppend(&text, " ... (", values.size(), ")");
  return text;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const LogitAdjustment& adjustment) {
  return out << adjustment.id << ":+" << adjustment.bias << "/" << adjustment.repetition << "-"
             << adjustment.penalty;
}

std::string DebugString(const StepDescriptor& step) {
  std::string text = absl::StrCat("step ", step.step_id.value, " epoch ", step.epoch.value, " ",
                                  KindName(step.kind), ": ", step.num_scheduled_tokens, " tokens, ",
                                  step.num_seqs_active, " sequences",
                                  step.skips_guesser ? ", none guessed for" : "", "\n");
  absl::StrAppend(&text, "  tokens ", Join(step.tokens), "\n  positions ", Join(step.positions),
                  "\n  query offsets ", Join(step.query_offsets), "\n");
  for (const SequenceEntry& seq : step.sequences) {
    absl::StrAppend(&text, "  slot ", seq.slot, ": query ", seq.query_len, ", context ",
                    seq.context_len);
    if (seq.load_snapshot != kv::kNoSnapshot) {
      absl::StrAppend(&text, ", loads snapshot ", seq.load_snapshot);
    }
    if (seq.save_snapshot != kv::kNoSnapshot) {
      absl::StrAppend(&text, ", saves snapshot ", seq.save_snapshot, " after ", seq.save_after);
    }
    absl::StrAppend(&text, "\n");
  }
  for (const GroupDeltas& group : step.groups) {
    absl::StrAppend(&text, "  group: tables");
    for (const TableDelta& table : group.tables) {
      absl::StrAppend(&text, " ", table.length_before, "..", table.length_after, " from ",
                      table.first_live);
    }
    absl::StrAppend(&text, " · blocks ", Join(group.blocks), " · slots ", Join(group.slot_mapping),
                    "\n");
  }
  for (const RowRequest& row : step.rows) {
    absl::StrAppend(&text, "  row: token ", row.token, " wants ", row.wants);
    if (NumLogprobs(row) > 0) {
      absl::StrAppend(&text, " top ", row.top_n, " log-probabilities of ", Join(row.logprobs_of));
    }
    absl::StrAppend(&text, "\n");
  }
  for (const RowSampling& row : step.sampling) {
    absl::StrAppend(&text, "  sampling: temperature ", row.temperature, " top_p ", row.top_p,
                    " min_p ", row.min_p, " top_k ", row.top_k, " seed ", row.seed, " position ",
                    row.position, " typical_p ", row.typical_p, " xtc ", row.xtc_probability,
                    " of ", row.xtc_threshold, " adjustments ", Join(row.adjustments));
    if (!row.allowed.empty()) {
      const auto add = [](uint32_t sum, uint32_t word) { return sum + std::popcount(word); };
      absl::StrAppend(&text, " of ",
                      std::accumulate(row.allowed.begin(), row.allowed.end(), 0u, add), " ids");
    }
    absl::StrAppend(&text, "\n");
  }
  for (const TokenReference& reference : step.references) {
    absl::StrAppend(&text, "  token ", reference.token, " is sample ", reference.sample,
                    " of the step before\n");
  }
  return text;
}

}  // namespace tandem::step
