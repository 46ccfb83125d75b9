// Speculator: guesses one sequence's next tokens, judges the guesses by what is drawn, and says
// which are worth computing before it is known whether they are right. A pure function of the
// tokens.
#ifndef TANDEM_COORDINATOR_SPECULATION_SPECULATOR_H_
#define TANDEM_COORDINATOR_SPECULATION_SPECULATOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "coordinator/speculation/draft_policy.h"
#include "coordinator/speculation/ngram_drafter.h"

namespace tandem::coordinator {

// One thread.
class Speculator {
 public:
  // `most`: drafts of one step.
  explicit Speculator(uint32_t most) : most_(most) {}

  // What is to be computed with the last of `tokens`, prompt and generated; empty: nothing.
  // REQUIRES: `tokens` begins with those of the last call.
  std::vector<TokenId> Guess(std::span<const TokenId> tokens);

 private:
  void Judge(std::span<const TokenId> drawn);

  const uint32_t most_;
  NgramDrafter drafter_;
  DraftPolicy policy_;
  size_t num_seen_ = 0;         // tokens of the last call
  std::vector<TokenId> guess_;  // of what follows them
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SPECULATION_SPECULATOR_H_
