#include "common/step/validate_drafts.h"

#include "common/base/status.h"
#include "common/step/invalid.h"

namespace tandem::step {
namespace {

bool WantsGuess(const RowRequest& row) { return (row.wants & kWantGuess) != 0; }

// `row` is the first that is not before the token which drafts follow.
absl::Status CheckSequence(const StepDescriptor& step, size_t s, size_t row) {
  const SequenceEntry& seq = step.sequences[s];
  for (uint32_t i = 0; i < seq.num_drafts; ++i, ++row) {
    const uint32_t token = step.TokenBeforeDrafts(s) + i;
    if (step.tokens[token + 1] != 0) {
      return Invalid("token ", token + 1, " has id ", step.tokens[token + 1],
                     " and is a draft, needed id 0");
    }
    if (row < step.rows.size() && step.rows[row].token == token && WantsGuess(step.rows[row])) {
      continue;
    }
    return Invalid("token ", token + 1, " is a draft, and no row wants the guess after token ",
                   token);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateDrafts(const StepDescriptor& step, const StepLimits& limits) {
  if (step.skips_guesser && !limits.workers_guess) {
    return Invalid("it skips the guesser, and the workers have no draft model or head");
  }
  for (size_t r = 0; r < step.rows.size(); ++r) {
    if (!WantsGuess(step.rows[r])) continue;
    if (!limits.workers_guess) {
      return Invalid("row ", r, " wants a guess, and the workers have no draft model or head");
    }
    if ((step.rows[r].wants & kWantSample) == 0) {
      return Invalid("row ", r, " wants a guess, and no sample");
    }
    if (step.skips_guesser) {
      return Invalid("row ", r, " wants a guess, and the step skips the guesser");
    }
  }
  size_t row = 0, num_drafts = 0;
  for (size_t s = 0; s < step.sequences.size(); ++s) {
    const SequenceEntry& seq = step.sequences[s];
    if (seq.num_drafts == 0) continue;
    if (seq.query_len <= seq.num_drafts) {
      return Invalid("sequence ", s, " of ", seq.query_len, " tokens has ", seq.num_drafts,
                     " drafts, needed a token before them");
    }
    while (row < step.rows.size() && step.rows[row].token < step.TokenBeforeDrafts(s)) ++row;
    TANDEM_RETURN_IF_ERROR(CheckSequence(step, s, row));
    num_drafts += seq.num_drafts;
  }
  if (num_drafts <= kMaxDraftRows) return absl::OkStatus();
  return Invalid(num_drafts, " drafts, at most ", kMaxDraftRows, " fit");
}

}  // namespace tandem::step
