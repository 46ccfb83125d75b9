#include "coordinator/grammar/automaton.h"

#include <algorithm>
#include <deque>

#include "absl/container/flat_hash_map.h"

namespace tandem::coordinator::grammar {
namespace {

// Of stacks that are put together: about as long as a look at a place.
constexpr size_t kBytesPerWork = 32;

}  // namespace

// All that can be reached without reading. A place is looked at again when stacks are added; all
// that were found by then are added at once.
class Automaton::Closure {
 public:
  Closure(const Network& network, StackSets& stacks, int64_t& work_left)
      : network_(network), stacks_(stacks), work_left_(work_left) {}

  void Add(NetworkState at, StackSets::Set stacks) {
    --work_left_;
    Reached& reached = reached_[at];
    reached.found.push_back(stacks);
    if (reached.found.size() == 1) waiting_.push_back(at);
  }

  // Null for want of work or room.
  std::optional<Content> Follow() {
    while (!waiting_.empty()) {
      if (work_left_ < 0 || stacks_.bytes() > kMaxBytes) return std::nullopt;
      const NetworkState at = waiting_.front();
      waiting_.pop_front();
      const size_t bytes = stacks_.bytes();
      if (const std::optional<StackSets::Set> all = Gather(reached_.at(at)); all.has_value()) {
        LookAt(network_.states[static_cast<size_t>(at)], *all);
      }
      work_left_ -= static_cast<int64_t>((stacks_.bytes() - bytes) / kBytesPerWork);
    }
    Content content{.can_end = can_end_, .places = {}};
    for (const auto& [at, reached] : reached_) {
      if (network_.states[static_cast<size_t>(at)].edges.empty()) continue;
      content.places.push_back({at, *reached.stacks});
    }
    std::ranges::sort(content.places, {}, &Place::at);
    return content;
  }

 private:
  struct Reached {
    std::optional<StackSets::Set> stacks;  // that were looked at
    std::vector<StackSets::Set> found;     // since then
  };

  // All stacks of a place, if some are new.
  std::optional<StackSets::Set> Gather(Reached& reached) {
    std::vector<StackSets::Set> sets = std::move(reached.found);
    reached.found.clear();
    if (reached.stacks.has_value()) sets.push_back(*reached.stacks);
    const StackSets::Set all = stacks_.Union(std::move(sets));
    if (reached.stacks == all) return std::nullopt;
    return reached.stacks = all;
  }

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
  absl::flat_hash_map<NetworkState, Reached> reached_;
  std::deque<NetworkState> waiting_;
  bool can_end_ = false;
};

Automaton::Automaton(std::shared_ptr<const Network> network, int64_t work)
    : network_(std::move(network)), work_left_(work) {
  Keep({.can_end = false, .places = {}});  // kDead
  Closure closure(*network_, stacks_, work_left_);
  closure.Add(network_->start, StackSets::kEmptyStack);
  start_ = StateOf(closure).value_or(kDead);
}

void Automaton::AllowWork(int64_t work) {
  work_left_ = work;
  want_ = Want::kNone;
}

size_t Automaton::bytes() const {
  return tables_.size() * (sizeof(Table) + sizeof(Content) + 2 * sizeof(void*)) +
         num_places_ * sizeof(Place) + stacks_.bytes();
}

Automaton::State Automaton::Import(const Automaton& from, State state) {
  Content content = from.Of(state);
  for (Place& place : content.places) place.stacks = stacks_.Import(from.stacks_, place.stacks);
  return Keep(std::move(content));
}

Automaton::State Automaton::Step(State state, uint8_t byte) {
  Closure closure(*network_, stacks_, work_left_);
  uint8_t first = 0, last = 255;  // bytes around it that all edges take for the same
  for (const Place& place : Of(state).places) {
    const auto& edges = network_->states[static_cast<size_t>(place.at)].edges;
    work_left_ -= static_cast<int64_t>(edges.size());
    for (const Network::ByteEdge& edge : edges) {
      const auto [from, to] = edge.bytes;
      if (to < byte) {
        first = std::max<uint8_t>(first, to + 1);
      } else if (byte < from) {
        last = std::min<uint8_t>(last, from - 1);
      } else {
        first = std::max(first, from);
        last = std::min(last, to);
        closure.Add(edge.to, place.stacks);
      }
    }
  }
  const std::optional<State> next = StateOf(closure);
  if (!next.has_value()) return kDead;
  Table& table = tables_[static_cast<size_t>(state)];
  std::fill(table.begin() + first, table.begin() + last + 1, *next);
  return *next;
}

std::optional<Automaton::State> Automaton::StateOf(Closure& closure) {
  std::optional<Content> content = closure.Follow();
  if (content.has_value() && bytes() <= kMaxBytes) return Keep(*std::move(content));
  const auto known = content.has_value() ? index_.find(*content) : index_.end();
  if (known != index_.end()) return known->second;
  want_ = work_left_ < 0 ? Want::kWork : Want::kRoom;
  return std::nullopt;
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
