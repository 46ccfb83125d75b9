#include "coordinator/grammar/network.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace tandem::coordinator::grammar {
namespace {

// Lays expressions out between two states each (Thompson, 1968).
class Builder {
 public:
  explicit Builder(const Grammar& grammar) : grammar_(grammar) {}

  absl::StatusOr<Network> Build() {
    for (size_t i = 0; i < grammar_.rules.size(); ++i) starts_.push_back(NewState());
    for (size_t i = 0; i < grammar_.rules.size(); ++i) {
      const NetworkState end = NewState();
      network_.states[static_cast<size_t>(end)].ends_rule = true;
      TANDEM_RETURN_IF_ERROR(Lay(grammar_.rules[i], starts_[i], end));
    }
    return std::move(network_);
  }

 private:
  NetworkState NewState() {
    network_.states.emplace_back();
    return static_cast<NetworkState>(network_.states.size() - 1);
  }
  Network::State& At(NetworkState state) { return network_.states[static_cast<size_t>(state)]; }
  void AddEdge(NetworkState from, ByteRange bytes, NetworkState to) {
    At(from).edges.push_back({bytes, to});
    ++num_edges_;
  }
  void Move(NetworkState from, NetworkState to) {
    At(from).moves.push_back(to);
    ++num_edges_;
  }

  absl::Status Lay(const Expression& expression, NetworkState from, NetworkState to) {
    if (network_.states.size() > kMaxNetworkStates || num_edges_ > kMaxNetworkEdges) {
      return absl::InvalidArgumentError(
          absl::StrCat("with repetitions written out the grammar has more than ", kMaxNetworkStates,
                       " states, or ", kMaxNetworkEdges, " edges"));
    }
    switch (expression.kind) {
      case Expression::Kind::kText:
        LayText(expression.text, from, to);
        return absl::OkStatus();
      case Expression::Kind::kClass:
        for (const CharacterRange& range : expression.ranges) LayRange(range, from, to);
        return absl::OkStatus();
      case Expression::Kind::kSequence:
        return LaySequence(expression.parts, from, to);
      case Expression::Kind::kChoice:
        for (const Expression& part : expression.parts) {
          TANDEM_RETURN_IF_ERROR(Lay(part, from, to));
        }
        return absl::OkStatus();
      case Expression::Kind::kRepeat:
        return LayRepeat(expression, from, to);
      case Expression::Kind::kRule:
        break;
    }
    if (expression.rule >= starts_.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the grammar has ", starts_.size(),
                                                     " rules, but not rule ", expression.rule));
    }
    At(from).calls.push_back({starts_[expression.rule], to});
    ++num_edges_;
    return absl::OkStatus();
  }

  void LayText(const std::string& text, NetworkState from, NetworkState to) {
    if (text.empty()) return Move(from, to);
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<uint8_t>(text[i]);
      const NetworkState next = i + 1 == text.size() ? to : NewState();
      AddEdge(from, {byte, byte}, next);
      from = next;
    }
  }
  void LayRange(CharacterRange range, NetworkState from, NetworkState to) {
    for (const ByteRanges& bytes : Utf8RangesOf(range)) {
      NetworkState at = from;
      for (size_t i = 0; i < bytes.size(); ++i) {
        const NetworkState next = i + 1 == bytes.size() ? to : NewState();
        AddEdge(at, bytes[i], next);
        at = next;
      }
    }
  }
  absl::Status LaySequence(const std::vector<Expression>& parts, NetworkState from,
                           NetworkState to) {
    for (const Expression& part : parts) {
      const NetworkState next = NewState();
      TANDEM_RETURN_IF_ERROR(Lay(part, from, next));
      from = next;
    }
    Move(from, to);
    return absl::OkStatus();
  }
  absl::Status LayRepeat(const Expression& repeat, NetworkState from, NetworkState to) {
    const Expression& part = repeat.parts.front();
    for (uint32_t i = 0; i < repeat.least; ++i) {
      const NetworkState next = NewState();
      TANDEM_RETURN_IF_ERROR(Lay(part, from, next));
      from = next;
    }
    if (repeat.most == kUnbounded) {
      const NetworkState loop = NewState();
      Move(from, loop);
      Move(loop, to);
      const NetworkState again = NewState();
      Move(again, loop);
      return Lay(part, loop, again);
    }
    for (uint32_t i = repeat.least; i < repeat.most; ++i) {
      Move(from, to);
      const NetworkState next = NewState();
      TANDEM_RETURN_IF_ERROR(Lay(part, from, next));
      from = next;
    }
    Move(from, to);
    return absl::OkStatus();
  }

  const Grammar& grammar_;
  Network network_;
  std::vector<NetworkState> starts_;
  size_t num_edges_ = 0;
};

bool Holds(const std::vector<bool>& holds, NetworkState state) {
  return holds[static_cast<size_t>(state)];
}

// From which states the end of their rule can be reached; if not `reads`, without reading anything.
// What leads to a state is looked at once, when it holds for that state.
std::vector<bool> Reaching(const Network& network, bool reads) {
  struct Lead {
    NetworkState from;
    NetworkState with;  // must hold, too: a call's other half
  };
  const size_t n = network.states.size();
  std::vector<std::vector<Lead>> leads(n);
  std::vector<bool> holds(n, false);
  std::vector<NetworkState> waiting;
  const auto mark = [&](NetworkState state) {
    if (Holds(holds, state)) return;
    holds[static_cast<size_t>(state)] = true;
    waiting.push_back(state);
  };
  for (size_t i = 0; i < n; ++i) {
    const Network::State& state = network.states[i];
    const auto from = static_cast<NetworkState>(i);
    const auto add = [&](NetworkState to, NetworkState with) {
      leads[static_cast<size_t>(to)].push_back({from, with});
    };
    for (const Network::ByteEdge& edge : state.edges) {
      if (reads) add(edge.to, edge.to);
    }
    for (const NetworkState to : state.moves) add(to, to);
    for (const Network::Call& call : state.calls) {
      add(call.start, call.to);
      add(call.to, call.start);
    }
    if (state.ends_rule) mark(from);
  }
  while (!waiting.empty()) {
    const NetworkState to = waiting.back();
    waiting.pop_back();
    for (const Lead& lead : leads[static_cast<size_t>(to)]) {
      if (Holds(holds, lead.with)) mark(lead.from);
    }
  }
  return holds;
}

// States from which nothing is left but to end the rule.
std::vector<bool> OnlyEnding(const Network& network) {
  const size_t n = network.states.size();
  std::vector<std::vector<size_t>> moving_to(n);
  std::vector<size_t> num_moves(n, 0);  // to states that are not known to be such
  std::vector<size_t> waiting;
  for (size_t i = 0; i < n; ++i) {
    const Network::State& state = network.states[i];
    if (!state.edges.empty() || !state.calls.empty()) continue;
    num_moves[i] = state.moves.size();
    for (const NetworkState to : state.moves) moving_to[static_cast<size_t>(to)].push_back(i);
    if (state.ends_rule && state.moves.empty()) waiting.push_back(i);
  }
  std::vector<bool> holds(n, false);
  while (!waiting.empty()) {
    const size_t to = waiting.back();
    waiting.pop_back();
    holds[to] = true;
    for (const size_t from : moving_to[to]) {
      if (--num_moves[from] == 0) waiting.push_back(from);
    }
  }
  return holds;
}

void RemoveDead(const std::vector<bool>& live, Network& network) {
  for (Network::State& state : network.states) {
    std::erase_if(state.edges, [&](const auto& edge) { return !Holds(live, edge.to); });
    std::erase_if(state.moves, [&](auto to) { return !Holds(live, to); });
    std::erase_if(state.calls, [&](const auto& call) {
      return !Holds(live, call.start) || !Holds(live, call.to);
    });
  }
}

// The starts of rules that a rule may call before it reads anything.
std::vector<NetworkState> FirstCalls(const Network& network, const std::vector<bool>& nullable,
                                     NetworkState start) {
  std::vector<NetworkState> calls, waiting = {start};
  absl::flat_hash_set<NetworkState> seen = {start};
  const auto go = [&](NetworkState to) {
    if (seen.insert(to).second) waiting.push_back(to);
  };
  while (!waiting.empty()) {
    const Network::State& state = network.states[static_cast<size_t>(waiting.back())];
    waiting.pop_back();
    for (const NetworkState to : state.moves) go(to);
    for (const Network::Call& call : state.calls) {
      calls.push_back(call.start);
      if (Holds(nullable, call.start)) go(call.to);
    }
  }
  return calls;
}

// Takes away rules that begin with none that is left: what stays begins with itself. A rule's start
// is the state of its number.
absl::Status CheckLeftRecursion(const Network& network, const Grammar& grammar) {
  const size_t num_rules = grammar.rules.size();
  const std::vector<bool> nullable = Reaching(network, /*reads=*/false);
  std::vector<std::vector<NetworkState>> calls(num_rules), callers(num_rules);
  std::vector<size_t> num_calls(num_rules, 0);
  for (size_t rule = 0; rule < num_rules; ++rule) {
    calls[rule] = FirstCalls(network, nullable, static_cast<int>(rule));
    for (const NetworkState called : calls[rule]) {
      callers[static_cast<size_t>(called)].push_back(static_cast<NetworkState>(rule));
    }
    num_calls[rule] = calls[rule].size();
  }
  std::vector<size_t> done;
  for (size_t rule = 0; rule < num_rules; ++rule) {
    if (num_calls[rule] == 0) done.push_back(rule);
  }
  for (size_t i = 0; i < done.size(); ++i) {
    for (const NetworkState caller : callers[done[i]]) {
      if (--num_calls[static_cast<size_t>(caller)] == 0) {
        done.push_back(static_cast<size_t>(caller));
      }
    }
  }
  if (done.size() == num_rules) return absl::OkStatus();
  // From one that is left to one that it begins with, so often that this is one that comes again.
  const auto is_left = [&](NetworkState rule) { return num_calls[static_cast<size_t>(rule)] > 0; };
  size_t rule = 0;
  while (num_calls[rule] == 0) ++rule;
  for (size_t i = 0; i < num_rules; ++i) {
    rule = static_cast<size_t>(*std::ranges::find_if(calls[rule], is_left));
  }
  const bool has_name = rule < grammar.names.size() && !grammar.names[rule].empty();
  return absl::InvalidArgumentError(
      absl::StrCat("rule ", has_name ? grammar.names[rule] : std::to_string(rule),
                   " of the grammar begins with itself, maybe by way of others: left recursion"));
}

}  // namespace

size_t Network::bytes() const {
  size_t bytes = states.size() * sizeof(State);
  for (const State& state : states) {
    bytes += state.edges.capacity() * sizeof(ByteEdge) + state.calls.capacity() * sizeof(Call) +
             state.moves.capacity() * sizeof(NetworkState);
  }
  return bytes;
}

absl::StatusOr<Network> Compile(const Grammar& grammar) {
  if (grammar.rules.empty()) return absl::InvalidArgumentError("the grammar has no rules");
  Builder builder(grammar);
  TANDEM_ASSIGN_OR_RETURN(Network network, builder.Build());
  const std::vector<bool> live = Reaching(network, /*reads=*/true);
  if (!Holds(live, network.start)) {
    return absl::InvalidArgumentError("no string of the grammar comes to an end");
  }
  RemoveDead(live, network);
  TANDEM_RETURN_IF_ERROR(CheckLeftRecursion(network, grammar));
  const std::vector<bool> only_ends = OnlyEnding(network);
  for (size_t i = 0; i < network.states.size(); ++i) network.states[i].only_ends = only_ends[i];
  return network;
}

}  // namespace tandem::coordinator::grammar
