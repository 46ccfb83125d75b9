// The parts of a JSON text (RFC 8259), as models write it: with a space or a line's indentation
// between its parts, or without.
#ifndef TANDEM_COORDINATOR_GRAMMAR_JSON_H_
#define TANDEM_COORDINATOR_GRAMMAR_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/grammar/expression.h"

namespace tandem::coordinator::grammar {

// A grammar of JSON texts begins with these rules, which the expressions here name.
inline constexpr RuleIndex kStartRule = 0;
inline constexpr RuleIndex kValueRule = 1;
inline constexpr RuleIndex kCharacterRule = 2;
inline constexpr RuleIndex kBlankRule = 3;
inline constexpr RuleIndex kPlainTextRule = 4;    // characters that stand for themselves
inline constexpr RuleIndex kBeyondAsciiRule = 5;  // one of them
// Those rules; others may follow.
Grammar JsonGrammar(Expression start);

// What may stand after a bracket, a brace or a comma and before the closing ones: nothing, a space,
// or a new line with spaces. Bounded, so that a model does not write blanks for ever.
Expression Blank();
// A character of a string, as itself or escaped; surrogates in pairs only.
Expression JsonCharacter();
Expression JsonString(uint32_t min_length = 0, uint32_t max_length = kUnbounded);
// Of at most 18 digits, so that 64 bits hold it.
Expression JsonInteger();
// With at most 18 digits before and after the point and two of an exponent: no infinity to anyone.
Expression JsonNumber();
// Any object, array or other value.
Expression JsonValue();
Expression JsonArray();
Expression JsonObject();

Expression InBrackets(char open, Expression content, char close);
Expression InQuotes(Expression content);
// `part`s with commas between. The second takes what AfterComma gives of a part; where there may be
// many it is a rule, as a repetition is written out.
Expression Listed(const Expression& part, uint32_t least, uint32_t most);
Expression Listed(Expression first, Expression more, uint32_t least, uint32_t most);
Expression AfterComma(Expression part);
// `"key": value`, where `key` is as it stands in a JSON text.
Expression Member(Expression key, Expression value);

// What `raw` says of a string's characters, as it stands in a JSON string: quotes, backslashes and
// control characters escaped. Rules are not followed.
Expression Quoted(const Expression& raw);

// A JSON string that is none of `keys`, without escapes. REQUIRES: UTF-8; it takes stack for each
// byte of the longest.
Expression StringExcept(const std::vector<std::string>& keys);

// The greatest integer of 18 digits.
inline constexpr int64_t kMostInteger = 999'999'999'999'999'999;
// A JSON integer from `least` to `most`. REQUIRES: at most 18 digits each.
Expression IntegerBetween(int64_t least, int64_t most);

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_JSON_H_
