// BracketGrammar: lists of lists and letters over an engine's simulated vocabulary, in which every
// id is one of a few texts.
#ifndef TANDEM_TESTS_COORDINATOR_GRAMMAR_BRACKET_GRAMMAR_H_
#define TANDEM_TESTS_COORDINATOR_GRAMMAR_BRACKET_GRAMMAR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "coordinator/grammar/token_grammar.h"
#include "tests/coordinator/grammar/byte_tokenizer.h"

namespace tandem::coordinator::grammar {

inline std::string TextOfId(TokenId id) {
  const char* const texts[] = {"[", "]", ",", "a", "b", "[a", "a,", ",[", "b]", "]]"};
  return texts[id % 10];
}
inline std::vector<Expression> BracketRules() {
  return {
      Choice({Sequence({Text("["),
                        Optional(Sequence({Rule(0), Repeat(Sequence({Text(","), Rule(0)}), 0)})),
                        Text("]")}),
              Class({{'a', 'b'}})})};
}

// The last id ends a generation.
inline std::shared_ptr<TokenGrammar> GrammarOfTexts(std::vector<Expression> rules,
                                                    uint32_t vocab_size) {
  std::vector<std::string> tokens;
  for (TokenId id = 0; id + 1 < static_cast<TokenId>(vocab_size); ++id) {
    tokens.push_back(TextOfId(id));
  }
  auto grammar = TokenGrammar::Create({std::move(rules)}, TrieOf(std::move(tokens)));
  TANDEM_CHECK_OK(grammar.status());
  return *std::move(grammar);
}
inline std::shared_ptr<TokenGrammar> BracketGrammar(uint32_t vocab_size) {
  return GrammarOfTexts(BracketRules(), vocab_size);
}

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_TESTS_COORDINATOR_GRAMMAR_BRACKET_GRAMMAR_H_
