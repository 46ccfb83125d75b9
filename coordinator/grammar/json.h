// The parts of a JSON text (RFC 8259), as models write it: with a space or a line's indentation
// between its parts, or without.
#ifndef TANDEM_COORDINATOR_GRAMMAR_JSON_H_
#define TANDEM_COORDINATOR_GRAMMAR_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/grammar/expression.h"

namespace tandem::coordinator::grammar {

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
// Any object, array or other value, where rule `value` is such a value.
Expression JsonValue(RuleIndex value);
Expression JsonArray(RuleIndex value);
Expression JsonObject(RuleIndex value);

// "[" least to most items "]", and members likewise in braces. `first` may be others' beginning.
Expression InBrackets(char open, Expression content, char close);
// `part`s with commas between.
Expression Listed(const Expression& part, uint32_t least, uint32_t most);
// `"key": value`, where `key` is as it stands in a JSON text.
Expression Member(Expression key, Expression value);

// What `raw` says of a string's characters, as it stands in a JSON string: quotes, backslashes and
// control characters escaped. Rules are not followed.
Expression Quoted(const Expression& raw);

// A JSON string that is none of `keys`, without escapes. REQUIRES: UTF-8; it takes stack for each
// byte of the longest.
Expression StringExcept(const std::vector<std::string>& keys);

// A JSON integer from `least` to `most`. REQUIRES: at most 18 digits each.
Expression IntegerBetween(int64_t least, int64_t most);

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_JSON_H_
