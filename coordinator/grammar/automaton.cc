#include "coordinator/grammar/automaton.h"

#include <algorithm>
#include <optional>

namespace tandem::coordinator::grammar {

namespace {

// Of stacks that are put together: about as long as a look at a place.
constexpr size_t kBytesPerWork = 32;

}  // namespace

// All that can be reached without reading. A place is looked at again when stacks are added.
class Automaton::Closure {
 public:
  Closure(const Network& network, StackSets& stacks, int64_t& work_left)
      : network_(network), stacks_(stacks), work_left_(work_left) {}

  void Add(NetworkState at, StackSets::Set stacks) {
    --work_left_;
    const auto [found, is_new] = reached_.try_emplace(at, stacks);
    const StackSets::Set all = is_new ? stacks : stacks_.Union(found->second, stacks);
    if (!is_new && all == found->second) return;
    found->second = all;
    waiting_.push_back(at);
  }

  // Null if it takes too long or too much.
  std::optional<Content> Follow() {
    while (!waiting_.empty()) {
      if (work_left_ < 0 || stacks_.bytes() > kMaxBytes) return std::nullopt;
      const NetworkState at = waiting_.back();
      waiting_.pop_back();
      const size_t bytes = stacks_.bytes();
      LookAt(network_.states[static_cast<size_t>(at)], reached_.at(at));
      work_left_ -= static_cast<int64_t>((stacks_.bytes() - bytes) / kBytesPerWork);
    }
    Content content{.can_end = can_end_, .places = {}};
    for (const auto& [at, stacks] : reached_) {
      if (network_.states[static_cast<size_t>(at)].edges.empty()) continue;
      content.places.push_back({at, stacks});
    }
    std::ranges::sort(content.places, {}, &Place::at);
    return content;
  }

 private:
  void LookAt(const Network::State& state, StackSets::Set stacks) {
    for (const NetworkState to : state.moves) Add(to, stacks);
    for (const Network::Call& call : state.calls) {
      const bool comes_back = !network_.states[static_cast<size_t>(call.to)].only_ends;
      if (!comes_back) {
        Add(call.start, stacks);
      } else if (stacks_.At(stacks).depth < kMaxDepth) {
        Add(call.start, stacks_.Push(call.to, stacks));
      }
    }
    if (!state.ends_rule) return;
    const StackSets::Node& node = stacks_.At(stacks);
    can_end_ |= node.has_empty;
    for (const StackSets::Frames& frames : node.frames) Add(frames.to, frames.below);
  }

  const Network& network_;
  StackSets& stacks_;
  int64_t& work_left_;
  Places reached_;
  std::vector<NetworkState> waiting_;
  bool can_end_ = false;
};

Automaton::Automaton(std::shared_ptr<const Network> network) : network_(std::move(network)) {
  StateOf({});  // kDead
  start_ = StateOf({{network_->start, StackSets::kEmptyStack}});
}

Automaton::State Automaton::Restart(State kept) {
  Content content = Of(kept);
  Automaton fresh(network_);
  fresh.AllowWork(work_left_);
  for (Place& place : content.places) place.stacks = fresh.stacks_.Import(stacks_, place.stacks);
  *this = std::move(fresh);
  return Keep(std::move(content));
}

size_t Automaton::bytes() const {
  return tables_.size() * (sizeof(Table) + sizeof(Content) + 2 * sizeof(void*)) +
         num_places_ * sizeof(Place) + stacks_.bytes();
}

Automaton::State Automaton::Step(State state, uint8_t byte) {
  Places reached;
  for (const Place& place : Of(state).places) {
    const auto& edges = network_->states[static_cast<size_t>(place.at)].edges;
    work_left_ -= static_cast<int64_t>(edges.size());
    for (const Network::ByteEdge& edge : edges) {
      if (byte < edge.bytes.first || edge.bytes.last < byte) continue;
      const auto [found, is_new] = reached.try_emplace(edge.to, place.stacks);
      if (!is_new) found->second = stacks_.Union(found->second, place.stacks);
    }
  }
  const State next = StateOf(reached);
  tables_[static_cast<size_t>(state)][byte] = next;
  return next;
}

Automaton::State Automaton::StateOf(const Places& from) {
  Closure closure(*network_, stacks_, work_left_);
  for (const auto& [at, stacks] : from) closure.Add(at, stacks);
  std::optional<Content> content = closure.Follow();
  if (!content.has_value() || bytes() > kMaxBytes) {
    const auto known = content.has_value() ? index_.find(*content) : index_.end();
    is_full_ |= known == index_.end();
    return known == index_.end() ? kDead : known->second;
  }
  return Keep(*std::move(content));
}

Automaton::State Automaton::Keep(Content content) {
  const auto next = static_cast<State>(tables_.size());
  const auto [found, is_new] = index_.try_emplace(std::move(content), next);
  if (is_new) {
    contents_.push_back(&found->first);
    num_places_ += found->first.places.size();
    tables_.emplace_back().fill(kUnknown);
  }
  return found->second;
}

}  // namespace tandem::coordinator::grammar
