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
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
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
  static constexpr size_t kMaxBytes = size_t{16} << 20;

  explicit Automaton(std::shared_ptr<const Network> network);
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
  // Whether kDead was said for want of room, or of work that is allowed.
  bool is_full() const { return is_full_; }
  // New states may take this much work from now on: places and edges looked at, a few nanoseconds
  // each. At first there is no bound.
  void AllowWork(int64_t work) { work_left_ = work; }
  // Forgets all states but this one, whose new number it returns. The work that is left stays.
  State Restart(State kept);
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
  using Places = absl::flat_hash_map<NetworkState, StackSets::Set>;
  using Table = std::array<State, 256>;
  class Closure;

  State Keep(Content content);
  const Content& Of(State state) const { return *contents_[static_cast<size_t>(state)]; }
  State Step(State state, uint8_t byte);
  // The state of all that can be reached from these without reading.
  State StateOf(const Places& from);

  std::shared_ptr<const Network> network_;
  StackSets stacks_;
  absl::node_hash_map<Content, State> index_;
  std::vector<const Content*> contents_;  // of each state, in index_
  std::vector<Table> tables_;
  State start_ = kDead;
  size_t num_places_ = 0;
  int64_t work_left_ = INT64_MAX;
  bool is_full_ = false;
};

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_AUTOMATON_H_
