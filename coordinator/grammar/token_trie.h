// TokenTrie: a vocabulary's tokens by their bytes, so that those which a grammar allows next are
// found without trying each.
//
// Immutable and thread-safe.
#ifndef TANDEM_COORDINATOR_GRAMMAR_TOKEN_TRIE_H_
#define TANDEM_COORDINATOR_GRAMMAR_TOKEN_TRIE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/tokenizer/tokenizer.h"
#include "coordinator/grammar/automaton.h"

namespace tandem::coordinator::grammar {

// A bit for each id, the lowest first, in whole words: those that may come next.
using TokenMask = std::vector<uint32_t>;

inline size_t MaskWords(int32_t vocab_size) { return (static_cast<size_t>(vocab_size) + 31) / 32; }
inline bool Contains(const TokenMask& mask, TokenId id) {
  return (mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0;
}
inline void Insert(TokenId id, TokenMask& mask) {
  mask[static_cast<size_t>(id) / 32] |= 1u << (id % 32);
}

class TokenTrie {
 public:
  // Tokens of which text is made: none that controls the model, ends a generation or has no bytes.
  explicit TokenTrie(const tokenizer::Tokenizer& tokenizer);

  int32_t vocab_size() const { return vocab_size_; }
  // The tokens whose bytes may follow in `state`.
  TokenMask AllowedIn(Automaton& automaton, Automaton::State state) const;

 private:
  // In the order of a walk from the root: children come right after their parent.
  struct Node {
    uint8_t byte;
    uint8_t depth;  // of the parent
    uint32_t end;   // the node after all below this one
    uint32_t first_token;
    uint32_t end_token;
  };
  using Tokens = std::vector<std::pair<std::string_view, TokenId>>;

  // The nodes of tokens [begin, end), which share their first `depth` bytes.
  void Add(const Tokens& tokens, size_t begin, size_t end, size_t depth);

  int32_t vocab_size_;
  std::vector<Node> nodes_;
  std::vector<TokenId> tokens_;
};

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_TOKEN_TRIE_H_
