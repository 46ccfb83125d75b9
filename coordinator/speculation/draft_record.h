// DraftRecord: how long guessing goes on where it is of no use, by how it went for all sequences.
#ifndef TANDEM_COORDINATOR_SPECULATION_DRAFT_RECORD_H_
#define TANDEM_COORDINATOR_SPECULATION_DRAFT_RECORD_H_

#include <cstdint>

namespace tandem::coordinator {

// One thread.
class DraftRecord {
 public:
  // A sequence's guesses are right often enough to be computed.
  void NoteUseful() { num_useless_ = 0; }
  // A guess was wrong, and its sequence's guesses are right too seldom to be computed.
  void NoteUseless() {
    if (num_useless_ < kManyUseless) ++num_useless_;
  }
  // How many more wrong guesses than right ones a sequence may have before it is given up, if its
  // guesses were never of use. A sequence whose guesses once were is given up after kPatience.
  uint32_t Patience() const {
    if (num_useless_ >= kManyUseless) return kLeastPatience;
    return num_useless_ >= kSomeUseless ? kLessPatience : kPatience;
  }

  // Where every guess is wrong and none is left out for want of room (Plan::may_draft), these are
  // at most the first 162, 34 and 10 tokens (DraftPolicy::IsWorthJudging), and what is in flight.
  static constexpr uint32_t kPatience = 16, kLessPatience = 8, kLeastPatience = 6;

 private:
  static constexpr uint32_t kSomeUseless = 16, kManyUseless = 64;

  uint32_t num_useless_ = 0;  // in a row
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SPECULATION_DRAFT_RECORD_H_
