// Automaton: the states that a network and its calls can be in after some bytes, made as they are
// met and kept: a byte of a string is then a look into a table.
//
// A state is a set of configurations, a state of the network each with a stack of the calls to come
// back from. One thread.
#ifndef TANDEM_COORDINATOR_GRAMMAR_AUTOMATON_H_
#define TANDEM_COORDINATOR_GRAMMAR_AUTOMATON_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "coordinator/grammar/network.h"

namespace tandem::coordinator::grammar {

class Automaton {
 public:
  using State = int32_t;
  // No string of the grammar begins so.
  static constexpr State kDead = 0;
  // Calls that wait for others, at most: what nests deeper is not allowed.
  static constexpr int32_t kMaxDepth = 256;
  // States, configurations of one and of all, and frames of stacks, at most: 64 MiB of tables and
  // as much of the others. Whoever reads on when it is_full() gets kDead.
  static constexpr size_t kMaxStates = 1 << 16;
  static constexpr size_t kMaxConfigurations = 1 << 12;
  static constexpr size_t kMaxAllConfigurations = 1 << 21;
  static constexpr size_t kMaxFrames = 1 << 20;

  explicit Automaton(Network network);

  State start() const { return start_; }
  // REQUIRES: `state` came from here.
  State Next(State state, uint8_t byte) {
    const State next = tables_[static_cast<size_t>(state)][byte];
    return next != kUnknown ? next : Step(state, byte);
  }
  // Whether the string may end here.
  bool CanEnd(State state) const { return ends_[static_cast<size_t>(state)]; }
  // Whether a string could not go on for want of room.
  bool is_full() const { return is_full_; }
  size_t num_states() const { return tables_.size(); }

 private:
  static constexpr State kUnknown = -1;
  static constexpr int32_t kNoFrame = -1;

  // A state of the network, and the last frame of the stack.
  using Configuration = std::pair<NetworkState, int32_t>;
  using Configurations = std::vector<Configuration>;
  struct Frame {
    NetworkState to;  // where the caller goes on
    int32_t below;    // kNoFrame: this is the last
    int32_t depth;
  };

  State Step(State state, uint8_t byte);
  // The state of all that can be reached from these without reading.
  State StateOf(Configurations waiting);
  // kNoFrame below the deepest; false if that is too deep.
  bool Push(NetworkState to, int32_t below, int32_t* frame);

  const Network network_;
  std::vector<Frame> frames_;
  absl::flat_hash_map<std::pair<NetworkState, int32_t>, int32_t> frame_index_;
  std::vector<Configurations> configurations_;  // of each state, those that read a byte; sorted
  std::vector<std::array<State, 256>> tables_;
  std::vector<bool> ends_;
  absl::flat_hash_map<std::pair<Configurations, bool>, State> index_;
  State start_ = kDead;
  size_t num_configurations_ = 0;
  bool is_full_ = false;
};

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_AUTOMATON_H_
