// Grammars as text: GBNF, the notation of llama.cpp (grammars/README.md there), which vLLM's EBNF
// has in common with it.
//
// A rule is `name ::= alternatives` with `|` between them; `root` is where a text begins. A
// sequence has names of rules, "texts", [classes] and `.`, which is any character, and groups in
// parentheses, each repeated by * + ? {n} {n,} {n,m}. Escapes: \n \r \t \xHH \uHHHH \UHHHHHHHH and
// punctuation. A rule ends with its line, but in a group, after ::= and |, and before a line that
// begins with |. # begins a comment. Refused, though llama.cpp takes them: tokens as <name> and
// <[id]>, a quantifier of a quantifier, empty classes, and rules that are said twice. Left
// recursion is refused by both.
#ifndef TANDEM_COORDINATOR_GRAMMAR_GBNF_H_
#define TANDEM_COORDINATOR_GRAMMAR_GBNF_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/grammar/expression.h"

namespace tandem::coordinator::grammar {

inline constexpr size_t kMaxGbnfBytes = 256 << 10;
inline constexpr size_t kMaxGbnfNameBytes = 256;  // of a rule's name
inline constexpr int kMaxGbnfDepth = 100;         // of groups
inline constexpr uint32_t kMaxGbnfCount = 2000;   // in braces

// INVALID_ARGUMENT with the line and column: not of this notation, beyond the limits, no `root`, a
// rule that is named but not there. Compile (network.h) finds the rest.
absl::StatusOr<Grammar> GrammarOfGbnf(std::string_view text);

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_GBNF_H_
