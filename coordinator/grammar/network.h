// Network: a grammar as states with edges that read a byte, and edges that call a rule and go on
// when it has ended (a recursive transition network; Woods, 1970).
//
// Immutable once compiled; thread-safe.
#ifndef TANDEM_COORDINATOR_GRAMMAR_NETWORK_H_
#define TANDEM_COORDINATOR_GRAMMAR_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/grammar/expression.h"
#include "coordinator/grammar/utf8_ranges.h"

namespace tandem::coordinator::grammar {

using NetworkState = int32_t;

struct Network {
  struct ByteEdge {
    ByteRange bytes;
    NetworkState to;
  };
  struct Call {
    NetworkState start;  // of the rule
    NetworkState to;     // when it has ended
  };
  struct State {
    std::vector<ByteEdge> edges{};
    std::vector<Call> calls{};
    std::vector<NetworkState> moves{};  // without reading anything
    bool ends_rule = false;
    // Nothing is left but to end the rule: who calls another as the last thing need not come back.
    bool only_ends = false;
  };
  std::vector<State> states;
  NetworkState start = 0;

  // Of memory, about.
  size_t bytes() const;
};

// Bounds of states and of what leads from one to another, as a repetition is written out.
inline constexpr size_t kMaxNetworkStates = 1 << 18;
inline constexpr size_t kMaxNetworkEdges = 1 << 20;

// INVALID_ARGUMENT: a rule that does not exist, that begins with itself (left recursion), or of
// which no string comes to an end although the grammar needs it; more than the bounds.
absl::StatusOr<Network> Compile(const Grammar& grammar);

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_NETWORK_H_
