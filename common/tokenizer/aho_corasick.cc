#include "common/tokenizer/aho_corasick.h"

#include <algorithm>
#include <numeric>

namespace tandem::tokenizer {

AhoCorasick::AhoCorasick(const std::vector<std::string>& patterns) : nodes_(1) {
  root_children_.fill(-1);
  for (size_t i = 0; i < patterns.size(); ++i) Insert(patterns[i], static_cast<int32_t>(i));
  Link();
}

void AhoCorasick::Insert(const std::string& pattern, int32_t index) {
  State state = kStart;
  for (char c : pattern) {
    const uint8_t byte = static_cast<uint8_t>(c);
    State child = Child(state, byte);
    if (child < 0) {
      child = static_cast<State>(nodes_.size());
      Node node;
      node.parent = state;
      node.depth = nodes_[state].depth + 1;
      node.byte = byte;
      nodes_.push_back(node);
      if (state == kStart) {
        root_children_[byte] = child;
      } else {
        children_.emplace(Edge(state, byte), child);
      }
    }
    state = child;
  }
  if (state != kStart && nodes_[state].longest_match < 0) nodes_[state].longest_match = index;
}

void AhoCorasick::Link() {
  // Breadth-first: the failure link of a node points to a shallower one.
  std::vector<State> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](State a, State b) { return nodes_[a].depth < nodes_[b].depth; });
  for (State state : order) {
    Node& node = nodes_[state];
    if (node.depth > 1) node.fail = Next(nodes_[node.parent].fail, node.byte);
    if (node.longest_match < 0) node.longest_match = nodes_[node.fail].longest_match;
  }
}

AhoCorasick::State AhoCorasick::Child(State state, uint8_t byte) const {
  if (state == kStart) return root_children_[byte];
  auto it = children_.find(Edge(state, byte));
  return it == children_.end() ? -1 : it->second;
}

AhoCorasick::State AhoCorasick::Next(State state, uint8_t byte) const {
  while (true) {
    const State child = Child(state, byte);
    if (child >= 0) return child;
    if (state == kStart) return kStart;
    state = nodes_[state].fail;
  }
}

}  // namespace tandem::tokenizer
