#include "coordinator/speculation/draft_policy.h"

#include <algorithm>

namespace tandem::coordinator {
namespace {

constexpr float kWeight = 0.25f;  // of the latest guess
constexpr float kLeast = 0.5f;    // below it a draft costs more than it saves
constexpr float kMost = 0.96f;    // so that one wrong guess among many long drafts counts

}  // namespace

void DraftPolicy::Judge(uint32_t num_right, bool one_wrong) {
  for (uint32_t i = 0; i < num_right && right_ < kMost; ++i) right_ += kWeight * (1 - right_);
  if (one_wrong) right_ -= kWeight * right_;
}

// As many as are expected to be right in a row, and one more.
uint32_t DraftPolicy::Length(uint32_t most) const {
  if (right_ < kLeast) return 0;
  const float expected = right_ / (1 - right_);
  return std::min(most, static_cast<uint32_t>(expected) + 1);
}

}  // namespace tandem::coordinator
