// A JSON schema (drafts 7 to 2020-12) as the grammar of JSON texts that it allows.
//
// Members come in the order of `properties`; an object with `properties` that says nothing of
// others has no others. `oneOf` is taken as `anyOf`. `format` is followed where it is date, time,
// date-time or uuid. Whatever else of validation is not followed is refused, so that a text of the
// grammar is always valid.
#ifndef TANDEM_COORDINATOR_GRAMMAR_JSON_SCHEMA_H_
#define TANDEM_COORDINATOR_GRAMMAR_JSON_SCHEMA_H_

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/grammar/expression.h"

namespace tandem::coordinator::grammar {

inline constexpr size_t kMaxSchemaBytes = 256 << 10;
inline constexpr int kMaxSchemaDepth = 64;

// INVALID_ARGUMENT with the place as a JSON pointer: no JSON, no schema, not followed (above), or
// beyond the limits.
absl::StatusOr<Grammar> GrammarOfSchema(std::string_view schema);

// Any JSON object.
Grammar GrammarOfAnyObject();

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_JSON_SCHEMA_H_
