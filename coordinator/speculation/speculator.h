// Speculator: guesses one sequence's next tokens, judges the guesses by what is drawn, and says
// which are worth computing before it is known whether they are right. A pure function of the
// tokens; of the workers' guesses, also of these and of the server's record of how it went.
#ifndef TANDEM_COORDINATOR_SPECULATION_SPECULATOR_H_
#define TANDEM_COORDINATOR_SPECULATION_SPECULATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "coordinator/speculation/draft_policy.h"
#include "coordinator/speculation/draft_record.h"
#include "coordinator/speculation/drafter.h"

namespace tandem::coordinator {

// One thread.
class Speculator {
 public:
  // `most`: drafts of one step. `num_tokens`: of the sequence so far, which are known already and
  // judge no guess. `record`: of the server, for guesses of the workers.
  Speculator(std::unique_ptr<Drafter> drafter, uint32_t most, size_t num_tokens = 0,
             DraftRecord* record = nullptr)
      : drafter_(std::move(drafter)),
        most_(most),
        policy_(drafter_->on_workers() ? record : nullptr),
        num_seen_(num_tokens) {}

  // What is to be computed with the last of `tokens`, prompt and generated; empty: nothing. Zeros
  // if the workers guess. REQUIRES: `tokens` begins with those of the last call.
  std::vector<TokenId> Guess(std::span<const TokenId> tokens);
  // In place of a call of Guess whose drafts could not be computed: the tokens judge no guess of
  // the workers, who were not asked.
  void Skip(std::span<const TokenId> tokens);
  // The workers have guessed what follows the tokens of the last call.
  void Learn(std::vector<TokenId> guess) { guess_ = std::move(guess); }
  bool on_workers() const { return drafter_->on_workers(); }
  // Guesses were of no use for so long that there will be no more.
  bool has_given_up() const { return policy_.has_given_up(); }
  // Whether workers that compute no drafts are to guess the token at `position`.
  bool IsWorthJudging(size_t position) const { return policy_.IsWorthJudging(position); }

 private:
  void Judge(std::span<const TokenId> drawn);

  const std::unique_ptr<Drafter> drafter_;
  const uint32_t most_;
  DraftPolicy policy_;
  size_t num_seen_;             // tokens of the last call
  std::vector<TokenId> guess_;  // of what follows them
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SPECULATION_SPECULATOR_H_
