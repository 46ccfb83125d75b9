// A JSON schema (drafts 7 to 2020-12) as the grammar of JSON texts that it allows.
//
// Members come in the order of `properties`; an object with `properties` that says nothing of
// others has no others. A grammar may allow less than its schema: numbers with bounds have no
// exponents, integers no point, strings with a `pattern` no needless escapes.
//
// What is not followed is refused, so that a text of the grammar is valid, with these exceptions:
// - `oneOf` is taken as `anyOf`.
// - `format` is followed where it is date, time, date-time, uuid, email, hostname, ipv4 or uri;
//   others are annotations, as they are by default since draft 2019-09.
// - Members that the schema does not name may come twice; readers keep the last one.
// - An exclusive bound holds for the number as it is written: a reader that rounds
//   0.999999999999999999 to a double has 1.
// - Unknown keywords are ignored, as the drafts say: those of OpenAPI and contentEncoding too.
//
// Refused are among others `not`, `if`, patternProperties, multipleOf, contains, uniqueItems,
// dependent schemas, bounds of members, references to other documents and to anchors, other
// keywords beside `$ref`, `enum` or `const`, and of `pattern`, `format` and lengths more than one.
// Bounds of numbers have at most 18 digits before and after the point.
#ifndef TANDEM_COORDINATOR_GRAMMAR_JSON_SCHEMA_H_
#define TANDEM_COORDINATOR_GRAMMAR_JSON_SCHEMA_H_

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/grammar/expression.h"

namespace tandem::coordinator::grammar {

inline constexpr size_t kMaxSchemaBytes = 256 << 10;
inline constexpr int kMaxSchemaDepth = 64;

// INVALID_ARGUMENT, in one line with the place as a JSON pointer: no JSON, no schema, not followed
// (above), or beyond the limits. What it gives may still be too large for Compile (network.h), or
// have no text.
absl::StatusOr<Grammar> GrammarOfSchema(std::string_view schema);

// Any JSON object.
Grammar GrammarOfAnyObject();

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_JSON_SCHEMA_H_
