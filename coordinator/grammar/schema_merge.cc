#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "coordinator/grammar/schema_compiler.h"

namespace tandem::coordinator::grammar {
namespace {

absl::Status MergeProperties(const Json& from, Json& to, std::string_view place) {
  if (!from.is_object() || !to.is_object()) return BadSchema(place, "is not an object");
  for (const auto& [key, value] : from.items()) {
    if (!to.contains(key)) {
      to[key] = value;
    } else if (to[key] != value) {
      TANDEM_ASSIGN_OR_RETURN(to[key], Merged(std::move(to[key]), value, Below(place, key)));
    }
  }
  return absl::OkStatus();
}

// Whether a schema forbids or restricts members that it does not name itself.
bool RestrictsOthers(const Json& schema) {
  return (schema.contains("additionalProperties") && schema["additionalProperties"] != true) ||
         schema.contains("unevaluatedProperties");
}
// Whether `other` names members that `schema` does not.
bool NamesMore(const Json& other, const Json& schema) {
  if (!other.contains("properties") || !other["properties"].is_object()) return false;
  if (!schema.contains("properties") || !schema["properties"].is_object()) return true;
  for (const auto& [key, value] : other["properties"].items()) {
    if (!schema["properties"].contains(key)) return true;
  }
  return false;
}

// What these say depends on each other.
bool HasItems(const Json& schema) {
  return schema.contains("items") || schema.contains("prefixItems") ||
         schema.contains("additionalItems");
}
Json Value(const Json& schema, const char* key) {
  return schema.contains(key) ? schema[key] : Json();
}

}  // namespace

bool IsAnnotation(std::string_view keyword) {
  constexpr std::string_view kAnnotations[] = {
      "$anchor",    "$comment",    "$defs",    "$id",      "$schema", "default",  "definitions",
      "deprecated", "description", "examples", "readOnly", "title",   "writeOnly"};
  return std::ranges::find(kAnnotations, keyword) != std::end(kAnnotations);
}

absl::StatusOr<Json> Merged(Json schema, const Json& other, std::string_view place) {
  if (other == true || schema == false) return schema;
  if (other == false || schema == true) return other;
  if (!schema.is_object() || !other.is_object()) return BadSchema(place, "is not a schema");
  if ((RestrictsOthers(schema) && NamesMore(other, schema)) ||
      (RestrictsOthers(other) && NamesMore(schema, other))) {
    return BadSchema(place, "\"additionalProperties\" forbids what another schema names");
  }
  // Each speaks of what its own schema leaves, not of what the other does.
  const auto conflict = [](const Json& one, const Json& two) {
    return one.contains("unevaluatedProperties") && two.contains("additionalProperties");
  };
  if (conflict(schema, other) || conflict(other, schema)) {
    return BadSchema(place, "\"unevaluatedProperties\" beside \"additionalProperties\"");
  }
  for (const char* key : {"items", "prefixItems", "additionalItems"}) {
    if (HasItems(schema) && HasItems(other) && Value(schema, key) != Value(other, key)) {
      return BadSchema(place, absl::StrCat("\"", key, "\" differs from another schema's"));
    }
  }
  for (const auto& [key, value] : other.items()) {
    if (!schema.contains(key)) {
      schema[key] = value;
    } else if (schema[key] == value || IsAnnotation(key)) {
      continue;
    } else if (key == "properties") {
      TANDEM_RETURN_IF_ERROR(MergeProperties(value, schema[key], Below(place, "properties")));
    } else if (key == "required" && value.is_array() && schema[key].is_array()) {
      for (const Json& name : value) {
        Json& names = schema[key];
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
      }
    } else {
      return BadSchema(place, absl::StrCat("\"", Excerpt(key), "\" is said twice, differently"));
    }
  }
  return schema;
}

}  // namespace tandem::coordinator::grammar
