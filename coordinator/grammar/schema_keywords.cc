// The keywords that are followed, and types.
#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "coordinator/grammar/schema_compiler.h"

namespace tandem::coordinator::grammar {
namespace {

constexpr std::array kOfObjects = {"properties", "required", "additionalProperties",
                                   "unevaluatedProperties"};
constexpr std::array kOfArrays = {"items",    "prefixItems", "minItems",
                                  "maxItems", "uniqueItems", "additionalItems"};
constexpr std::array kOfStrings = {"minLength", "maxLength", "format", "pattern"};
constexpr std::array kOfNumbers = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"};
constexpr std::array kOthers = {"$ref", "allOf", "anyOf", "oneOf", "const", "enum", "type"};

constexpr size_t kNumTypes = 7;

absl::StatusOr<bool> IsOfType(const Json& value, const Json& type, std::string_view place) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "number") return IsNumber(value);
  if (type == "integer") return value.is_number_integer();
  return BadSchema(place, absl::StrCat("there is no \"type\" ", Excerpt(JsonText(type))));
}
bool HasAny(const Json& schema, const auto& keywords, std::string_view apart_from = {}) {
  return std::ranges::any_of(keywords,
                             [&](const char* k) { return k != apart_from && schema.contains(k); });
}

}  // namespace

bool SpeaksOfObjects(const Json& schema) { return HasAny(schema, kOfObjects); }
bool SpeaksOfArrays(const Json& schema) { return HasAny(schema, kOfArrays); }
bool SpeaksOfStrings(const Json& schema) { return HasAny(schema, kOfStrings); }
bool SpeaksOfNumbers(const Json& schema) { return HasAny(schema, kOfNumbers); }

bool Constrains(const Json& schema, std::string_view apart_from) {
  return HasAny(schema, kOthers, apart_from) || SpeaksOfObjects(schema) || SpeaksOfArrays(schema) ||
         SpeaksOfStrings(schema) || SpeaksOfNumbers(schema);
}

absl::StatusOr<bool> IsOfTypes(const Json& value, const Json& schema, std::string_view place) {
  if (!schema.contains("type")) return true;
  const Json& types = schema["type"];
  if (!types.is_array()) return IsOfType(value, types, place);
  if (types.size() > kNumTypes) return BadSchema(place, "\"type\" names one twice");
  bool fits = false;
  for (const Json& type : types) {
    TANDEM_ASSIGN_OR_RETURN(const bool one, IsOfType(value, type, place));
    fits |= one;
  }
  return fits;
}

}  // namespace tandem::coordinator::grammar
