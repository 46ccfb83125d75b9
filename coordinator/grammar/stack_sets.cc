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

StackSets::Set StackSets::Union(std::vector<Set> sets) {
  std::ranges::sort(sets);
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  if (sets.size() == 1) return sets[0];
  if (const auto known = unions_.find(sets); known != unions_.end()) return known->second;
  std::vector<Frames> all;
  bool has_empty = false;
  for (const Set set : sets) {
    has_empty |= At(set).has_empty;
    all.insert(all.end(), At(set).frames.begin(), At(set).frames.end());
  }
  std::ranges::stable_sort(all, {}, &Frames::to);
  std::vector<Frames> frames;
  for (auto begin = all.begin(); begin != all.end();) {
    std::vector<Set> below;
    auto end = begin;
    for (; end != all.end() && end->to == begin->to; ++end) below.push_back(end->below);
    frames.push_back({begin->to, Union(std::move(below))});
    begin = end;
  }
  const Set set = SetOf(has_empty, std::move(frames));
  bytes_ += sizeof(std::vector<Set>) + (sets.size() + 2) * sizeof(Set);
  unions_.emplace(std::move(sets), set);
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
