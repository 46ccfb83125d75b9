// DraftPolicy: how many tokens to draft for a sequence, by how often its drafter was right.
#ifndef TANDEM_COORDINATOR_SPECULATION_DRAFT_POLICY_H_
#define TANDEM_COORDINATOR_SPECULATION_DRAFT_POLICY_H_

#include <cstddef>
#include <cstdint>

#include "coordinator/speculation/draft_record.h"

namespace tandem::coordinator {

// A moving average of right guesses. Guesses are judged also while none is computed, so drafting
// begins after a few right ones and ends after a few wrong ones.
class DraftPolicy {
 public:
  // `record`: shared by sequences whose guesses cost something even if they are only judged; such a
  // sequence is given up when its guesses are of no use. Outlives the policy; null: never given up.
  explicit DraftPolicy(DraftRecord* record = nullptr) : record_(record) {}

  // The last guesses of the sequence's next tokens: `num_right` were drawn, and then, if
  // `one_wrong`, another token than the guess.
  void Judge(uint32_t num_right, bool one_wrong);

  // How many to compute now, at most `most`. 0: guesses are judged only.
  uint32_t Length(uint32_t most) const;

  // While none is computed: whether to guess the token at `position`, only to judge that. A guess
  // on the workers has a cost, so after several wrong ones in a row they are made less and less
  // often.
  bool IsWorthJudging(size_t position) const;

  // From then on nothing is computed or judged.
  bool has_given_up() const { return has_given_up_; }

 private:
  void NoteUse(uint32_t num_right, bool one_wrong);

  DraftRecord* const record_;
  float right_ = 0.0f;        // the probability that a guess is right
  uint32_t num_wrong_ = 0;    // guesses, since the last right one
  uint32_t num_useless_ = 0;  // wrong guesses less right ones, since they were worth computing
  bool was_of_use_ = false;
  bool has_given_up_ = false;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SPECULATION_DRAFT_POLICY_H_
