// Scheduler's side of promised prefixes: who waits for whom, and until when.
#include <algorithm>
#include <span>

#include "coordinator/scheduler/queue_order.h"
#include "coordinator/scheduler/scheduler.h"

namespace tandem::coordinator {
namespace {

// As many tokens as this are waited for even if they are a small part of the prompt.
constexpr uint32_t kLargePart = 512;

}  // namespace

std::optional<Scheduler::Offer> Scheduler::BestOffer(const Sequence& sequence,
                                                     const PrefixMatch& match) const {
  // What it waited for has been computed and is not there: not waited for again.
  if (promises_.num_leaders() == 0 || match.num_tokens < sequence.num_awaited) return std::nullopt;
  const std::optional<uint64_t> hash =
      kv_.HashTwoAhead(match, sequence.Shareable(), sequence.prefix_hashes);
  if (!hash.has_value()) return std::nullopt;
  Offer best{};
  for (Sequence* leader : promises_.LeadersOf(*hash)) {
    // What is served first does not wait for what is served later.
    if (!ServedBefore(*leader, sequence)) continue;
    const uint32_t end = OfferedEnd(*leader, sequence, match.num_tokens);
    if (end > best.end) best = {.leader = leader, .end = end};
  }
  return IsWorthWaiting(match.num_tokens, best.end, sequence.num_tokens()) ? std::optional(best)
                                                                           : std::nullopt;
}

uint32_t Scheduler::OfferedEnd(const Sequence& leader, const Sequence& sequence,
                               uint32_t begin) const {
  // At least one token is left to compute. Scored and pooled tokens may be few in a step: those of
  // the leader are not waited for.
  const std::span<const TokenId> wanted =
      sequence.Shareable().first(sequence.Shareable().size() - 1);
  const std::span<const TokenId> offered = Promisable(leader);
  if (leader.prefix_hashes.root != sequence.prefix_hashes.root || begin > wanted.size() ||
      begin > offered.size()) {
    return 0;
  }
  const std::span<const TokenId> rest = wanted.subspan(begin);
  const auto differs = std::ranges::mismatch(rest, offered.subspan(begin)).in1;
  const uint32_t common = begin + static_cast<uint32_t>(differs - rest.begin());
  uint32_t end = common / kv_.config().block_size * kv_.config().block_size;
  const SnapshotPoints& points = leader.snapshot_points;
  if (points.interval > 0 && !MayAddSnapshotPoint(leader, end)) end = points.NotAfter(end);
  return end > leader.num_computed ? end : 0;
}

bool Scheduler::IsWorthWaiting(uint32_t begin, uint32_t end, uint32_t num_tokens) const {
  if (end < begin + 2 * kv_.config().block_size) return false;
  const uint32_t saved = end - begin;
  return saved >= std::min(config_.MostStepTokens(), kLargePart) || saved >= num_tokens - end;
}

std::span<const TokenId> Scheduler::Promisable(const Sequence& leader) {
  return std::span(leader.tokens)
      .first(std::min<size_t>(leader.tokens.size(),
                              std::min(leader.FirstWanted(), leader.unshared_from)));
}

bool Scheduler::MayAddSnapshotPoint(const Sequence& leader, uint32_t num_tokens) {
  const SnapshotPoints& points = leader.snapshot_points;
  return points.shared_end <= leader.num_scheduled && leader.num_scheduled < num_tokens;
}

void Scheduler::KeepStateAt(Sequence& leader, uint32_t num_tokens, StepBudget& budget) const {
  SnapshotPoints& points = leader.snapshot_points;
  if (points.interval == 0 || points.NotAfter(num_tokens) == num_tokens) return;
  points.shared_end = num_tokens;
  const uint32_t given = budget.given[leader.slot];
  ReturnTokens(leader, given - points.Fit(leader.num_scheduled, given), budget);
}

void Scheduler::UpdatePromise(Sequence& sequence) {
  WaitAgain(promises_.TakeReady(sequence, sequence.num_computed));
  const bool is_computed = sequence.num_computed >= sequence.num_tokens();
  const std::optional<uint64_t> hash =
      is_computed ? std::nullopt : kv_.HashTwoAhead(sequence.blocks, Promisable(sequence));
  if (hash.has_value()) {
    promises_.Promise(sequence, *hash);
  } else {
    promises_.Retract(sequence);
  }
}

void Scheduler::BreakPromise(Sequence& sequence) {
  promises_.Retract(sequence);
  const std::vector<Sequence*> followers = promises_.TakeReady(sequence, UINT32_MAX);
  for (Sequence* follower : followers) follower->num_awaited = 0;
  WaitAgain(followers);
}

void Scheduler::WaitAgain(const std::vector<Sequence*>& followers) {
  if (followers.empty()) return;
  const auto before = [](const Sequence* one, const Sequence* other) {
    return ServedBefore(*one, *other);
  };
  const auto num_waiting = static_cast<std::ptrdiff_t>(waiting_.size());
  waiting_.insert(waiting_.end(), followers.begin(), followers.end());
  std::sort(waiting_.begin() + num_waiting, waiting_.end(), before);
  std::inplace_merge(waiting_.begin(), waiting_.begin() + num_waiting, waiting_.end(), before);
}

}  // namespace tandem::coordinator
