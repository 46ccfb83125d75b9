#include "coordinator/grammar/automaton.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace tandem::coordinator::grammar {

Automaton::Automaton(Network network) : network_(std::move(network)) {
  StateOf({});  // kDead
  start_ = StateOf({{network_.start, kNoFrame}});
}

bool Automaton::Push(NetworkState to, int32_t below, int32_t* frame) {
  const int32_t depth = below == kNoFrame ? 1 : frames_[static_cast<size_t>(below)].depth + 1;
  if (depth > kMaxDepth) return false;
  if (frames_.size() >= kMaxFrames && !frame_index_.contains({to, below})) {
    is_full_ = true;
    return false;
  }
  const auto [found, is_new] =
      frame_index_.try_emplace({to, below}, static_cast<int32_t>(frames_.size()));
  if (is_new) frames_.push_back({to, below, depth});
  *frame = found->second;
  return true;
}

Automaton::State Automaton::Step(State state, uint8_t byte) {
  Configurations reached;
  for (const auto& [at, frame] : configurations_[static_cast<size_t>(state)]) {
    for (const Network::ByteEdge& edge : network_.states[static_cast<size_t>(at)].edges) {
      if (edge.bytes.first <= byte && byte <= edge.bytes.last) reached.push_back({edge.to, frame});
    }
  }
  const State next = StateOf(std::move(reached));
  tables_[static_cast<size_t>(state)][byte] = next;
  return next;
}

Automaton::State Automaton::StateOf(Configurations waiting) {
  absl::flat_hash_set<Configuration> seen(waiting.begin(), waiting.end());
  Configurations reading;
  bool ends = false;
  const auto go = [&](NetworkState to, int32_t frame) {
    if (seen.insert({to, frame}).second) waiting.push_back({to, frame});
  };
  while (!waiting.empty()) {
    const auto [at, frame] = waiting.back();
    waiting.pop_back();
    if (seen.size() > kMaxConfigurations) {
      is_full_ = true;
      return kDead;
    }
    const Network::State& state = network_.states[static_cast<size_t>(at)];
    if (!state.edges.empty()) reading.push_back({at, frame});
    for (const NetworkState to : state.moves) go(to, frame);
    for (const Network::Call& call : state.calls) {
      int32_t top = frame;
      const bool comes_back = !network_.states[static_cast<size_t>(call.to)].only_ends;
      if (!comes_back || Push(call.to, frame, &top)) go(call.start, top);
    }
    if (!state.ends_rule) continue;
    if (frame == kNoFrame) {
      ends = true;
    } else {
      const Frame top = frames_[static_cast<size_t>(frame)];
      go(top.to, top.below);
    }
  }
  std::ranges::sort(reading);
  const auto next = static_cast<State>(tables_.size());
  if (tables_.size() >= kMaxStates ||
      num_configurations_ + reading.size() > kMaxAllConfigurations) {
    const auto found = index_.find({reading, ends});
    is_full_ |= found == index_.end();
    return found == index_.end() ? kDead : found->second;
  }
  const auto [found, is_new] = index_.try_emplace({reading, ends}, next);
  if (is_new) {
    num_configurations_ += reading.size();
    configurations_.push_back(std::move(reading));
    tables_.emplace_back().fill(kUnknown);
    ends_.push_back(ends);
  }
  return found->second;
}

}  // namespace tandem::coordinator::grammar
