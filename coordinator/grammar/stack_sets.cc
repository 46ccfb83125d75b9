#include "coordinator/grammar/stack_sets.h"

#include <algorithm>

namespace tandem::coordinator::grammar {

StackSets::StackSets() { SetOf(/*has_empty=*/true, {}); }

StackSets::Set StackSets::SetOf(bool has_empty, std::vector<Frames> frames) {
  Node node{.has_empty = has_empty, .frames = std::move(frames)};
  for (const Frames& one : node.frames) node.depth = std::max(node.depth, At(one.below).depth + 1);
  const auto [found, is_new] = index_.try_emplace(std::move(node), static_cast<Set>(nodes_.size()));
  if (is_new) {
    nodes_.push_back(&found->first);
    bytes_ += sizeof(Node) + found->first.frames.size() * sizeof(Frames) + 2 * sizeof(void*);
  }
  return found->second;
}

StackSets::Set StackSets::Push(NetworkState to, Set below) { return SetOf(false, {{to, below}}); }

StackSets::Set StackSets::Union(Set a, Set b) {
  if (a == b) return a;
  if (a > b) std::swap(a, b);
  if (const auto known = unions_.find({a, b}); known != unions_.end()) return known->second;
  const Node &x = At(a), &y = At(b);
  std::vector<Frames> frames;
  frames.reserve(x.frames.size() + y.frames.size());
  auto next = y.frames.begin();
  for (const Frames& one : x.frames) {
    while (next != y.frames.end() && next->to < one.to) frames.push_back(*next++);
    const bool in_both = next != y.frames.end() && next->to == one.to;
    frames.push_back({one.to, in_both ? Union(one.below, (next++)->below) : one.below});
  }
  frames.insert(frames.end(), next, y.frames.end());
  const Set set = SetOf(x.has_empty || y.has_empty, std::move(frames));
  unions_[{a, b}] = set;
  bytes_ += 2 * sizeof(std::pair<Set, Set>);
  return set;
}

StackSets::Set StackSets::Import(const StackSets& from, Set set) {
  absl::flat_hash_map<Set, Set> imported;
  // Sets that are below others were made before them, so the stack holds them last.
  std::vector<Set> waiting = {set};
  while (!waiting.empty()) {
    const Set next = waiting.back();
    const Node& node = from.At(next);
    const size_t before = waiting.size();
    std::vector<Frames> frames;
    for (const Frames& one : node.frames) {
      const auto known = imported.find(one.below);
      known == imported.end() ? waiting.push_back(one.below)
                              : frames.push_back({one.to, known->second});
    }
    if (waiting.size() > before) continue;
    waiting.pop_back();
    imported[next] = SetOf(node.has_empty, std::move(frames));
  }
  return imported.at(set);
}

}  // namespace tandem::coordinator::grammar
