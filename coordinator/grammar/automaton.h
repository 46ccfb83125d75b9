// Automaton: the states that a network and its calls can be in after some bytes, made as they are
// met and kept: a byte of a string is then a look into a table.
//
// A state says for some states of the network with which stacks of calls to come back from they can
// be reached. One thread.
#ifndef TANDEM_COORDINATOR_GRAMMAR_AUTOMATON_H_
#define TANDEM_COORDINATOR_GRAMMAR_AUTOMATON_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "coordinator/grammar/network.h"
#include "coordinator/grammar/stack_sets.h"

namespace tandem::coordinator::grammar {

class Automaton {
 public:
  using State = int32_t;
  // No string of the grammar begins so.
  static constexpr State kDead = 0;
  // Calls that wait for others, at most: what nests deeper is not allowed.
  static constexpr int32_t kMaxDepth = 256;
  // Of everything that is kept.
  static constexpr size_t kMaxBytes = size_t{8} << 20;
  // Why Next() last gave kDead for a state that it could not make.
  enum class Want { kNone, kRoom, kWork };

  // The start is dead if it takes more `work`: then something is wanted.
  explicit Automaton(std::shared_ptr<const Network> network, int64_t work = INT64_MAX);
  explicit Automaton(Network network)
      : Automaton(std::make_shared<const Network>(std::move(network))) {}

  State start() const { return start_; }
  // REQUIRES: `state` came from here.
  State Next(State state, uint8_t byte) {
    const State next = tables_[static_cast<size_t>(state)][byte];
    return next != kUnknown ? next : Step(state, byte);
  }
  // Whether the string may end here.
  bool CanEnd(State state) const { return Of(state).can_end; }
  // A state of an automaton of the same network.
  State Import(const Automaton& from, State state);

  Want want() const { return want_; }
  // New states may take this much work from now on: places and edges looked at, a fraction of a
  // microsecond each. Nothing is wanted any more.
  void AllowWork(int64_t work);
  size_t num_states() const { return tables_.size(); }
  size_t bytes() const;

 private:
  static constexpr State kUnknown = -1;

  struct Place {
    NetworkState at;
    StackSets::Set stacks;
    bool operator==(const Place&) const = default;
    template <typename H>
    friend H AbslHashValue(H state, const Place& place) {
      return H::combine(std::move(state), place.at, place.stacks);
    }
  };
  struct Content {
    bool can_end;
    std::vector<Place> places;  // that read a byte, ascending by `at`, each once
    bool operator==(const Content&) const = default;
    template <typename H>
    friend H AbslHashValue(H state, const Content& content) {
      return H::combine(std::move(state), content.can_end, content.places);
    }
  };
  using Table = std::array<State, 256>;
  class Closure;

  const Content& Of(State state) const { return *contents_[static_cast<size_t>(state)]; }
  State Step(State state, uint8_t byte);
  // The state of all that the closure reaches; none for want of something.
  std::optional<State> StateOf(Closure& closure);
  State Keep(Content content);

  std::shared_ptr<const Network> network_;
  StackSets stacks_;
  absl::node_hash_map<Content, State> index_;
  std::vector<const Content*> contents_;  // of each state, in index_
  std::vector<Table> tables_;
  State start_ = kDead;
  size_t num_places_ = 0;
  int64_t work_left_;
  Want want_ = Want::kNone;
};

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_AUTOMATON_H_
