// TokenTrie: a vocabulary's tokens by their bytes, so that those which a grammar allows next are
// found without trying each.
//
// Immutable and thread-safe.
#ifndef TANDEM_COORDINATOR_GRAMMAR_TOKEN_TRIE_H_
#define TANDEM_COORDINATOR_GRAMMAR_TOKEN_TRIE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/ids.h"
#include "common/step/token_mask.h"
#include "common/tokenizer/tokenizer.h"
#include "coordinator/grammar/automaton.h"

namespace tandem::coordinator::grammar {

using step::TokenMask;

class TokenTrie {
 public:
  // The tokens below `vocab_size`, which is the head's: none that ends a generation or has no
  // bytes. Those that control the model, of which no text is made, are kControlToken and their
  // name; others with that byte are not here.
  TokenTrie(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, uint32_t vocab_size);

  uint32_t vocab_size() const { return vocab_size_; }
  // The bytes of a token, none of one that is not here.
  std::string_view BytesOf(TokenId id) const;
  // The tokens whose bytes may follow in `state`; some are missing if the automaton wants something
  // then.
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

  void AddControlToken(TokenId id);
  // The nodes of tokens [begin, end), which share their first `depth` bytes.
  void Add(const Tokens& tokens, size_t begin, size_t end, size_t depth);

  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  const uint32_t vocab_size_;
  absl::flat_hash_map<TokenId, std::string> control_tokens_;
  std::vector<Node> nodes_;
  std::vector<TokenId> tokens_;
};

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_TOKEN_TRIE_H_
