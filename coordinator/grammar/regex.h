// Regular expressions as expressions of a grammar.
//
// The syntax that ECMA 262, Python and PCRE2 have in common: characters, `.`, classes, the escapes
// \d \D \w \W \s \S \t \n \r \f \v \0 \xHH \uHHHH \u{H...} and of punctuation, groups (also named
// ones, which are groups like others), `|`, and `* + ? {n} {n,} {n,m}` with their lazy forms, which
// are the same language. `^` begins an alternative that is in no group, and `$` ends one. What is
// not regular or not the same everywhere is refused: references, lookaround, \b, \p, flags,
// possessive quantifiers, a brace that is no count.
#ifndef TANDEM_COORDINATOR_GRAMMAR_REGEX_H_
#define TANDEM_COORDINATOR_GRAMMAR_REGEX_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/grammar/expression.h"

namespace tandem::coordinator::grammar {

inline constexpr size_t kMaxRegexBytes = 64 << 10;
inline constexpr int kMaxRegexDepth = 100;        // of groups
inline constexpr uint32_t kMaxRegexCount = 1000;  // in braces
// Places of the expression when its repetitions are written out, about.
inline constexpr uint64_t kMaxRegexStates = 1 << 18;

enum class RegexUse {
  // The whole text matches: anchors say nothing. `.` is any character but a new line; \d, \w and
  // \s are those of ASCII.
  kWhole,
  // As in "pattern" of a JSON schema (ECMA 262, with flag "u"): other text may stand before what
  // does not begin with `^` and after what does not end with `$`. `.` is no line terminator, and
  // \s is any white space of Unicode.
  kSearch,
};

// INVALID_ARGUMENT with the byte: not of this syntax, or beyond the limits.
absl::StatusOr<Expression> ExpressionOfRegex(std::string_view pattern, RegexUse use);

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_REGEX_H_
