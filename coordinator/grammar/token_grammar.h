// TokenGrammar: a grammar over a vocabulary's tokens, shared by all requests that ask for it, and
// Matcher, one generation's place in it.
#ifndef TANDEM_COORDINATOR_GRAMMAR_TOKEN_GRAMMAR_H_
#define TANDEM_COORDINATOR_GRAMMAR_TOKEN_GRAMMAR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "coordinator/grammar/automaton.h"
#include "coordinator/grammar/expression.h"
#include "coordinator/grammar/token_trie.h"

namespace tandem::coordinator::grammar {

// What may follow some tokens: others, or the end.
struct Continuation {
  std::shared_ptr<const TokenMask> allowed;
  bool has_tokens = false;  // `allowed` is not empty
  bool can_end = false;
};

// Thread-safe.
class TokenGrammar {
 public:
  // The masks that are kept, at most.
  static constexpr size_t kMaxMasks = 256;
  // Of new states that are met after one token (Automaton::AllowWork): tens of milliseconds, which
  // the engine waits. Forms as people write them take thousandths of it.
  static constexpr int64_t kMaxWork = 1 << 19;

  // INVALID_ARGUMENT as Compile, or if no token begins a string of it.
  static absl::StatusOr<std::shared_ptr<TokenGrammar>> Create(
      const Grammar& grammar, std::shared_ptr<const TokenTrie> tokens);

  // What a text begins with; it has tokens.
  const Continuation& first() const { return first_; }

 private:
  friend class Matcher;

  // After some tokens. When the automaton is full it starts anew with one place, and all others are
  // found again by their tokens: `version` says which states are meant.
  struct Place {
    uint64_t version = 0;
    size_t num_tokens = 0;
    Automaton::State state = Automaton::kDead;
  };

  TokenGrammar(std::shared_ptr<const Network> network, std::shared_ptr<const TokenTrie> tokens);

  absl::StatusOr<Continuation> Follow(std::span<const TokenId> tokens, Place& place);
  // kDead if it leads nowhere, or if it takes more than there is room for even alone.
  Automaton::State Next(Place& place, char byte) TANDEM_REQUIRES(mutex_);
  // INTERNAL if one of the tokens is not allowed.
  absl::Status Read(std::span<const TokenId> tokens, Place& place) TANDEM_REQUIRES(mutex_);
  Continuation ContinuationIn(Place& place) TANDEM_REQUIRES(mutex_);
  // Forgets all states but this one.
  void Restart(Place& place) TANDEM_REQUIRES(mutex_);

  const std::shared_ptr<const Network> network_;
  const std::shared_ptr<const TokenTrie> tokens_;
  Continuation first_;
  Mutex mutex_;
  uint64_t version_ TANDEM_GUARDED_BY(mutex_) = 1;
  Automaton automaton_ TANDEM_GUARDED_BY(mutex_);
  absl::flat_hash_map<Automaton::State, Continuation> continuations_ TANDEM_GUARDED_BY(mutex_);
};

// One thread.
class Matcher {
 public:
  explicit Matcher(std::shared_ptr<TokenGrammar> grammar) : grammar_(std::move(grammar)) {}

  // What may follow `tokens`. REQUIRES: they begin with those of the last call. INTERNAL if they
  // are of no string of the grammar; FAILED_PRECONDITION if nothing may follow, as strings would
  // nest too deep or take too much memory or work, or no token has the bytes that are needed.
  absl::StatusOr<Continuation> Follow(std::span<const TokenId> tokens) {
    return grammar_->Follow(tokens, place_);
  }

 private:
  std::shared_ptr<TokenGrammar> grammar_;
  TokenGrammar::Place place_;
};

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_TOKEN_GRAMMAR_H_
