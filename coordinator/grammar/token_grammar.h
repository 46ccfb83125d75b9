// TokenGrammar: a grammar over a vocabulary's tokens, shared by all requests that ask for it, and
// Matcher, one generation's place in it.
#ifndef TANDEM_COORDINATOR_GRAMMAR_TOKEN_GRAMMAR_H_
#define TANDEM_COORDINATOR_GRAMMAR_TOKEN_GRAMMAR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

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
  // Of new states in one call of Follow (Automaton::AllowWork): a tenth of a second at most, which
  // the engine waits.
  static constexpr int64_t kMaxWork = 1 << 19;

  // INVALID_ARGUMENT as Compile, or if no token begins a string of it, or that takes too much
  // memory or work to find.
  static absl::StatusOr<std::shared_ptr<TokenGrammar>> Create(
      const Grammar& grammar, std::shared_ptr<const TokenTrie> tokens);

  // What a text begins with; it has tokens.
  const Continuation& first() const { return first_; }
  // Of memory, at most, without the masks.
  size_t bytes() const { return network_bytes() + Automaton::kMaxBytes; }
  size_t network_bytes() const { return network_->bytes(); }

 private:
  friend class Matcher;

  // After some tokens. A full automaton is left for a new one: a place in the old one keeps it
  // until it moves.
  struct Place {
    std::shared_ptr<Automaton> automaton;
    size_t num_tokens = 0;
    Automaton::State state = Automaton::kDead;
  };

  TokenGrammar(std::shared_ptr<const Network> network, std::shared_ptr<const TokenTrie> tokens);

  absl::StatusOr<Continuation> Follow(std::span<const TokenId> tokens, Place& place);
  absl::Status CheckStart();
  void Move(Place& place) TANDEM_REQUIRES(mutex_);
  // False if there is room, or none even in a new automaton.
  bool MakeRoom(Place& place) TANDEM_REQUIRES(mutex_);
  void Read(char byte, Place& place) TANDEM_REQUIRES(mutex_);
  // INTERNAL if one of the tokens is not allowed.
  absl::Status Read(std::span<const TokenId> tokens, Place& place) TANDEM_REQUIRES(mutex_);
  Continuation ContinuationIn(Place& place) TANDEM_REQUIRES(mutex_);

  const std::shared_ptr<const Network> network_;
  const std::shared_ptr<const TokenTrie> tokens_;
  Continuation first_;
  Mutex mutex_;
  std::shared_ptr<Automaton> automaton_ TANDEM_GUARDED_BY(mutex_);
  bool is_new_ TANDEM_GUARDED_BY(mutex_) = false;  // made for the token or mask at hand
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
