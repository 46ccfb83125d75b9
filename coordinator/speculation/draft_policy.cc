#include "coordinator/speculation/draft_policy.h"

#include <algorithm>

namespace tandem::coordinator {
namespace {

constexpr float kWeight = 0.25f;  // of the latest guess
constexpr float kLeast = 0.5f;    // below it a draft costs more than it saves
constexpr float kMost = 0.96f;    // so that one wrong guess among many long drafts counts

// After so many wrong guesses every second token is guessed, after one more every fourth, and so
// on.
constexpr uint32_t kPatience = 4;
constexpr uint32_t kMostDoublings = 4;

}  // namespace

void DraftPolicy::Judge(uint32_t num_right, bool one_wrong) {
  for (uint32_t i = 0; i < num_right && right_ < kMost; ++i) right_ += kWeight * (1 - right_);
  if (num_right > 0) num_wrong_ = 0;
  if (one_wrong) {
    right_ -= kWeight * right_;
    ++num_wrong_;
  }
  if (record_ != nullptr && !has_given_up_) NoteUse(num_right, one_wrong);
}

void DraftPolicy::NoteUse(uint32_t num_right, bool one_wrong) {
  if (right_ >= kLeast) {
    was_of_use_ = true;
    num_useless_ = 0;
    record_->NoteUseful();
    return;
  }
  num_useless_ -= std::min(num_useless_, num_right);
  if (!one_wrong) return;
  ++num_useless_;
  record_->NoteUseless();
  const uint32_t patience = was_of_use_ ? DraftRecord::kPatience : record_->Patience();
  has_given_up_ = num_useless_ >= patience;
}

// As many as are expected to be right in a row, and one more.
uint32_t DraftPolicy::Length(uint32_t most) const {
  if (right_ < kLeast || has_given_up_) return 0;
  const float expected = right_ / (1 - right_);
  return std::min(most, static_cast<uint32_t>(expected) + 1);
}

bool DraftPolicy::IsWorthJudging(size_t position) const {
  if (has_given_up_) return false;
  if (num_wrong_ < kPatience) return true;
  const uint32_t doublings = std::min(num_wrong_ - kPatience + 1, kMostDoublings);
  return position % (size_t{1} << doublings) == 0;
}

}  // namespace tandem::coordinator
