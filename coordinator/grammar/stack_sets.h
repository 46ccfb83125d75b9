// StackSets: sets of stacks of calls, as an ambiguous text has several. Stacks share what they have
// in common (graph-structured stacks; Tomita, 1987), so that sets of exponentially many stay small.
//
// A set is a trie of its stacks from the last call downwards, in which equal parts are one: sets
// are equal if and only if their numbers are. One thread.
#ifndef TANDEM_COORDINATOR_GRAMMAR_STACK_SETS_H_
#define TANDEM_COORDINATOR_GRAMMAR_STACK_SETS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "coordinator/grammar/network.h"

namespace tandem::coordinator::grammar {

class StackSets {
 public:
  using Set = int32_t;
  // Nothing but the stack without calls.
  static constexpr Set kEmptyStack = 0;

  // Stacks whose last call returns to `to`, by the set of what is left when it has returned.
  struct Frames {
    NetworkState to;
    Set below;
    bool operator==(const Frames&) const = default;
    template <typename H>
    friend H AbslHashValue(H state, const Frames& frames) {
      return H::combine(std::move(state), frames.to, frames.below);
    }
  };
  struct Node {
    bool has_empty = false;      // the stack without calls is one of them
    std::vector<Frames> frames;  // ascending by `to`, each once
    int32_t depth = 0;           // calls of the deepest; follows from the others
    bool operator==(const Node&) const = default;
    template <typename H>
    friend H AbslHashValue(H state, const Node& node) {
      return H::combine(std::move(state), node.has_empty, node.frames);
    }
  };

  StackSets();

  // REQUIRES: sets of this object.
  const Node& At(Set set) const { return *nodes_[static_cast<size_t>(set)]; }
  // Each stack with one more call.
  Set Push(NetworkState to, Set below);
  // REQUIRES: at least one.
  Set Union(std::vector<Set> sets);
  // A set of another object.
  Set Import(const StackSets& from, Set set);
  // Roughly; grows only.
  size_t bytes() const { return bytes_; }

 private:
  Set SetOf(bool has_empty, std::vector<Frames> frames);

  absl::node_hash_map<Node, Set> index_;
  std::vector<const Node*> nodes_;                     // of each set, in index_
  absl::flat_hash_map<std::vector<Set>, Set> unions_;  // of sets that ascend
  size_t bytes_ = 0;
};

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_STACK_SETS_H_
