// The JSON text of a schema as values, and how refusals speak of them. Internal to this folder.
#ifndef TANDEM_COORDINATOR_GRAMMAR_SCHEMA_JSON_H_
#define TANDEM_COORDINATOR_GRAMMAR_SCHEMA_JSON_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tandem::coordinator::grammar {

// Members in the order of the text. A number that is no integer of 64 bits is kept as its text, in
// a binary value: no digit is lost.
using Json = nlohmann::ordered_json;

inline constexpr int kMaxJsonDepth = 512;
// Of one object; names are looked up one by one.
inline constexpr size_t kMaxJsonMembers = 1024;

// INVALID_ARGUMENT: no JSON text, one where a name stands twice in an object, or beyond the bounds.
absl::StatusOr<Json> SchemaJson(std::string_view text);

inline bool IsNumber(const Json& value) { return value.is_number() || value.is_binary(); }
// A JSON text of the value.
std::string JsonText(const Json& value);
// How many values it is made of, with itself, and more for long strings.
size_t SizeOf(const Json& value);

// One line of at most about 60 bytes.
std::string Excerpt(std::string_view text);
// JSON pointers to a value of the one in `place`.
std::string Below(std::string_view place, std::string_view name);
std::string Below(std::string_view place, size_t index);

// `what` is wrong at a place of the schema, which is a JSON pointer.
absl::Status BadSchema(std::string_view place, std::string_view what);

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_SCHEMA_JSON_H_
