#include "coordinator/scheduler/promised_prefixes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "coordinator/scheduler/queue_order.h"

namespace tandem::coordinator {
namespace {

// The entry of `sequence` under `key`.
template <typename Map>
auto Find(Map& map, typename Map::key_type key, const Sequence& sequence) {
  const auto [begin, end] = map.equal_range(key);
  const auto found =
      std::find_if(begin, end, [&](const auto& entry) { return entry.second == &sequence; });
  TANDEM_CHECK(found != end) << "sequence " << sequence.handle << " is not where it says";
  return found;
}

}  // namespace

void PromisedPrefixes::Promise(Sequence& leader, uint64_t hash) {
  if (leader.promised == hash) return;
  Retract(leader);
  leaders_.emplace(hash, &leader);
  leader.promised = hash;
}

void PromisedPrefixes::Retract(Sequence& leader) {
  if (!leader.promised.has_value()) return;
  leaders_.erase(Find(leaders_, *leader.promised, leader));
  leader.promised.reset();
}

std::vector<Sequence*> PromisedPrefixes::LeadersOf(uint64_t hash) const {
  std::vector<Sequence*> found;
  const auto [begin, end] = leaders_.equal_range(hash);
  for (auto entry = begin; entry != end; ++entry) found.push_back(entry->second);
  return found;
}

void PromisedPrefixes::Follow(Sequence& follower, Sequence& leader, uint32_t num_tokens) {
  TANDEM_CHECK(follower.leader == nullptr) << "sequence " << follower.handle << " follows two";
  follower.leader = &leader;
  follower.num_awaited = num_tokens;
  followers_[&leader].emplace(num_tokens, &follower);
  ++num_followers_;
}

void PromisedPrefixes::Leave(Sequence& follower) {
  const auto found = followers_.find(std::exchange(follower.leader, nullptr));
  TANDEM_CHECK(found != followers_.end()) << "sequence " << follower.handle << " follows nobody";
  found->second.erase(Find(found->second, follower.num_awaited, follower));
  --num_followers_;
  if (found->second.empty()) followers_.erase(found);
}

std::vector<Sequence*> PromisedPrefixes::TakeReady(Sequence& leader, uint32_t num_computed) {
  std::vector<Sequence*> ready;
  if (num_followers_ == 0) return ready;
  const auto found = followers_.find(&leader);
  if (found == followers_.end()) return ready;
  Followers& followers = found->second;
  const auto end = followers.upper_bound(num_computed);
  for (auto next = followers.begin(); next != end; ++next) {
    next->second->leader = nullptr;
    ready.push_back(next->second);
  }
  followers.erase(followers.begin(), end);
  num_followers_ -= ready.size();
  if (followers.empty()) followers_.erase(found);
  return ready;
}

absl::Status PromisedPrefixes::CheckIntegrity() const {
  for (const auto& [hash, leader] : leaders_) {
    if (leader->state == SequenceState::kRunning && leader->promised == hash) continue;
    return absl::InternalError(
        absl::StrCat("sequence ", leader->handle, " does not run, or promises something else"));
  }
  size_t num_followers = 0;
  for (const auto& [leader, followers] : followers_) {
    num_followers += followers.size();
    for (const auto& [num_tokens, follower] : followers) {
      if (follower->leader == leader && follower->num_awaited == num_tokens &&
          follower->state == SequenceState::kWaiting && follower->blocks.empty() &&
          leader->state == SequenceState::kRunning && leader->num_computed < num_tokens &&
          ServedBefore(*leader, *follower)) {
        continue;
      }
      return absl::InternalError(absl::StrCat("sequence ", follower->handle, " waits for ",
                                              num_tokens, " tokens of ", leader->handle,
                                              ", which has ", leader->num_computed));
    }
  }
  if (num_followers == num_followers_) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(num_followers, " sequences wait for a prefix, ", num_followers_, " counted"));
}

}  // namespace tandem::coordinator
