#include "common/step/validate_references.h"

#include <span>

#include "common/base/status.h"
#include "common/step/invalid.h"

namespace tandem::step {
namespace {

absl::Status CheckSample(const StepDescriptor& step, const TokenReference& reference, size_t s,
                         std::span<const DrawnToken> drawn) {
  if (reference.sample >= drawn.size()) {
    return Invalid("token ", reference.token, " refers to sample ", reference.sample,
                   ", the step before draws ", drawn.size());
  }
  const DrawnToken& found = drawn[reference.sample];
  const uint32_t slot = step.sequences[s].slot;
  const int32_t position = step.positions[reference.token];
  if (found.slot == slot && found.position == static_cast<uint64_t>(position)) {
    return absl::OkStatus();
  }
  return Invalid("token ", reference.token, " of slot ", slot, " at position ", position,
                 " refers to sample ", reference.sample, ", which is drawn for slot ", found.slot,
                 " at position ", found.position);
}

}  // namespace

absl::Status ValidateReferences(const StepDescriptor& step, const BlockTables& tables) {
  size_t s = 0;
  for (const TokenReference& reference : step.references) {
    while (s < step.sequences.size() && step.query_offsets[s + 1] <= reference.token) ++s;
    if (s == step.sequences.size() || step.query_offsets[s + 1] != reference.token + 1) {
      return Invalid("a reference stands for token ", reference.token,
                     ", needed the last one of a sequence, ascending");
    }
    if (step.tokens[reference.token] != 0) {
      return Invalid("token ", reference.token, " has id ", step.tokens[reference.token],
                     " and a reference, needed id 0");
    }
    if (step.sequences[s].num_drafts > 0) {
      return Invalid("token ", reference.token, " has a reference and is a draft");
    }
    TANDEM_RETURN_IF_ERROR(CheckSample(step, reference, s, tables.drawn()));
    ++s;  // one reference per sequence
  }
  return absl::OkStatus();
}

}  // namespace tandem::step
