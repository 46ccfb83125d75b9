#include "coordinator/grammar/schema_compiler.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "coordinator/grammar/json.h"
#include "coordinator/grammar/json_schema.h"

namespace tandem::coordinator::grammar {
namespace {

// Keywords of validation that are not followed.
constexpr std::array kRefused = {"$dynamicRef",
                                 "$recursiveRef",
                                 "contains",
                                 "dependencies",
                                 "dependentRequired",
                                 "dependentSchemas",
                                 "else",
                                 "if",
                                 "maxContains",
                                 "maxProperties",
                                 "minContains",
                                 "minProperties",
                                 "multipleOf",
                                 "not",
                                 "pattern",
                                 "patternProperties",
                                 "propertyNames",
                                 "then",
                                 "unevaluatedItems"};
// Those that are followed, by the type of what they speak of.
constexpr std::array kOfObjects = {"properties", "required", "additionalProperties",
                                   "unevaluatedProperties"};
constexpr std::array kOfArrays = {"items",    "prefixItems", "minItems",
                                  "maxItems", "uniqueItems", "additionalItems"};
constexpr std::array kOfStrings = {"minLength", "maxLength", "format"};
constexpr std::array kOfNumbers = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"};

constexpr size_t kMostSchemas = 1 << 14;
constexpr size_t kMostMerged = 1 << 9;

bool HasAny(const Json& schema, const auto& keywords) {
  return std::ranges::any_of(keywords, [&](const char* k) { return schema.contains(k); });
}
bool Constrains(const Json& schema) {
  constexpr std::array kOthers = {"$ref", "allOf", "anyOf", "oneOf", "const", "enum", "type"};
  return HasAny(schema, kOthers) || HasAny(schema, kOfObjects) || HasAny(schema, kOfArrays) ||
         HasAny(schema, kOfStrings) || HasAny(schema, kOfNumbers);
}
std::string Below(std::string_view place, std::string_view name) {
  return absl::StrCat(Sv(place), "/", Sv(name));
}
std::string Below(std::string_view place, size_t index) {
  return absl::StrCat(Sv(place), "/", index);
}

// Whether a value is of a type by its name.
absl::StatusOr<bool> IsOfType(const Json& value, const Json& type, std::string_view place) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "number") return value.is_number();
  if (type == "integer") return value.is_number_integer();
  return BadSchema(place, absl::StrCat("there is no \"type\" ", type.dump()));
}
// Whether it is of one of the types of a schema.
absl::StatusOr<bool> IsOfTypes(const Json& value, const Json& schema, std::string_view place) {
  if (!schema.contains("type")) return true;
  const Json& types = schema["type"];
  if (!types.is_array()) return IsOfType(value, types, place);
  bool fits = false;
  for (const Json& type : types) {
    TANDEM_ASSIGN_OR_RETURN(const bool one, IsOfType(value, type, place));
    fits |= one;
  }
  return fits;
}

}  // namespace

absl::Status BadSchema(std::string_view place, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("JSON schema, ", Sv(place), ": ", Sv(what)));
}

absl::StatusOr<Grammar> SchemaCompiler::Compile() {
  rules_ = {Text(""), JsonValue(kAnyValue)};
  references_["#"] = kStart;
  TANDEM_ASSIGN_OR_RETURN(rules_[kStart], Of(root_, "#", 0));
  return Grammar{std::move(rules_)};
}

absl::Status SchemaCompiler::Spend(size_t* done, size_t most, const std::string& place) {
  if (++*done <= most) return absl::OkStatus();
  return BadSchema(place, absl::StrCat("choices and references make more than ", most, " schemas"));
}

RuleIndex SchemaCompiler::NewRule(Expression expression) {
  rules_.push_back(std::move(expression));
  return static_cast<RuleIndex>(rules_.size() - 1);
}

SchemaCompiler::Part SchemaCompiler::Of(const Json& schema, const std::string& place, int depth) {
  if (depth > kMaxSchemaDepth) {
    return BadSchema(place, absl::StrCat("schemas nest deeper than ", kMaxSchemaDepth));
  }
  TANDEM_RETURN_IF_ERROR(Spend(&num_schemas_, kMostSchemas, place));
  if (schema.is_boolean()) return schema.get<bool>() ? Rule(kAnyValue) : Choice({});
  if (!schema.is_object()) return BadSchema(place, "a schema is an object, true or false");
  if (depth > 0 && schema.contains("$id")) {
    return BadSchema(place, "\"$id\" is supported at the root only");
  }
  for (const char* keyword : kRefused) {
    if (schema.contains(keyword)) {
      return BadSchema(place, absl::StrCat("\"", keyword, "\" is not supported"));
    }
  }
  return OfKeywords(schema, place, depth);
}

SchemaCompiler::Part SchemaCompiler::OfKeywords(Json schema, const std::string& place, int depth) {
  if (schema.contains("$ref")) return OfReference(schema, place, depth);
  if (schema.contains("allOf")) return OfAll(std::move(schema), place, depth);
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (schema.contains(keyword)) return OfChoice(std::move(schema), keyword, place, depth);
  }
  if (schema.contains("const") || schema.contains("enum")) return OfValues(schema, place);
  return OfTypes(schema, place, depth);
}

const Json* SchemaCompiler::Find(std::string_view reference) const {
  const Json* at = &root_;
  if (!reference.starts_with("#")) return nullptr;
  reference.remove_prefix(1);
  while (!reference.empty()) {
    if (reference[0] != '/') return nullptr;
    reference.remove_prefix(1);
    const std::string_view step = reference.substr(0, reference.find('/'));
    reference.remove_prefix(step.size());
    std::string name;
    for (size_t i = 0; i < step.size(); ++i) {
      const bool escaped = step[i] == '~' && i + 1 < step.size();
      name += escaped ? (step[++i] == '1' ? '/' : '~') : step[i];
    }
    if (!at->is_object() || !at->contains(name)) return nullptr;
    at = &(*at)[name];
  }
  return at;
}

SchemaCompiler::Part SchemaCompiler::OfReference(const Json& schema, const std::string& place,
                                                 int depth) {
  Json rest = schema;
  rest.erase("$ref");
  if (Constrains(rest)) return BadSchema(place, "other keywords beside \"$ref\" are not supported");
  if (!schema["$ref"].is_string()) return BadSchema(place, "\"$ref\" is not a string");
  const std::string reference = schema["$ref"].get<std::string>();
  const auto known = references_.find(reference);
  if (known != references_.end()) return Rule(known->second);
  const Json* const target = Find(reference);
  if (target == nullptr) {
    return BadSchema(place, absl::StrCat("\"$ref\" to ", reference, ", which is not in it"));
  }
  const RuleIndex rule = NewRule(Text(""));
  references_[reference] = rule;
  TANDEM_ASSIGN_OR_RETURN(rules_[rule], Of(*target, reference, depth + 1));
  return Rule(rule);
}

SchemaCompiler::Part SchemaCompiler::OfChoice(Json schema, std::string_view keyword,
                                              const std::string& place, int depth) {
  const std::string name(keyword);
  const Json branches = schema[name];
  schema.erase(name);
  const std::string below = Below(place, keyword);
  if (!branches.is_array() || branches.empty()) return BadSchema(below, "is not a list of schemas");
  std::vector<Expression> choices;
  for (size_t i = 0; i < branches.size(); ++i) {
    const std::string branch = Below(below, i);
    if (!Constrains(schema)) {
      TANDEM_ASSIGN_OR_RETURN(choices.emplace_back(), Of(branches[i], branch, depth + 1));
      continue;
    }
    TANDEM_RETURN_IF_ERROR(Spend(&num_merged_, kMostMerged, branch));
    TANDEM_ASSIGN_OR_RETURN(const Json merged, Merged(schema, branches[i], branch));
    TANDEM_ASSIGN_OR_RETURN(choices.emplace_back(), Of(merged, branch, depth + 1));
  }
  return Choice(std::move(choices));
}

SchemaCompiler::Part SchemaCompiler::OfAll(Json schema, const std::string& place, int depth) {
  const Json parts = schema["allOf"];
  schema.erase("allOf");
  const std::string below = Below(place, "allOf");
  if (!parts.is_array() || parts.empty()) return BadSchema(below, "is not a list of schemas");
  if (parts.size() == 1 && !Constrains(schema)) return Of(parts[0], Below(below, 0), depth + 1);
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string part = Below(below, i);
    const Json* found = &parts[i];
    if (found->is_object() && found->size() == 1 && found->contains("$ref") &&
        (*found)["$ref"].is_string()) {
      found = Find((*found)["$ref"].get<std::string>());
      if (found == nullptr) return BadSchema(part, "\"$ref\" to what is not in it");
    }
    TANDEM_RETURN_IF_ERROR(Spend(&num_merged_, kMostMerged, part));
    TANDEM_ASSIGN_OR_RETURN(schema, Merged(std::move(schema), *found, part));
  }
  return Of(schema, place, depth + 1);
}

SchemaCompiler::Part SchemaCompiler::OfValues(const Json& schema, const std::string& place) {
  if (HasAny(schema, kOfObjects) || HasAny(schema, kOfArrays) || HasAny(schema, kOfStrings) ||
      HasAny(schema, kOfNumbers)) {
    return BadSchema(place, "other keywords beside \"enum\" or \"const\" are not supported");
  }
  if (schema.contains("enum") && !schema["enum"].is_array()) {
    return BadSchema(place, "\"enum\" is not a list");
  }
  const Json values = schema.contains("enum") ? schema["enum"] : Json::array({schema["const"]});
  std::vector<Expression> choices;
  for (const Json& value : values) {
    if (schema.contains("const") && value != schema["const"]) continue;
    TANDEM_ASSIGN_OR_RETURN(const bool fits, IsOfTypes(value, schema, place));
    if (fits) choices.push_back(Text(value.dump()));
  }
  if (choices.empty()) {
    return BadSchema(place, "no value fits \"enum\", \"const\" and \"type\"");
  }
  return Choice(std::move(choices));
}

SchemaCompiler::Part SchemaCompiler::OfTypes(const Json& schema, const std::string& place,
                                             int depth) {
  if (!schema.contains("type")) {
    if (HasAny(schema, kOfObjects)) return OfObject(schema, place, depth);
    if (HasAny(schema, kOfArrays)) return OfArray(schema, place, depth);
    if (HasAny(schema, kOfStrings)) return OfString(schema, place);
    if (HasAny(schema, kOfNumbers)) return OfNumber(schema, place);
    return Rule(kAnyValue);
  }
  const Json& type = schema["type"];
  if (type.is_string()) return OfType(type.get<std::string>(), schema, place, depth);
  if (!type.is_array() || type.empty()) return BadSchema(place, "\"type\" is no name and no list");
  std::vector<Expression> choices;
  for (const Json& one : type) {
    if (!one.is_string()) return BadSchema(place, "\"type\" is a list of names");
    if (std::ranges::count(type, one) > 1) return BadSchema(place, "\"type\" names one twice");
    TANDEM_ASSIGN_OR_RETURN(choices.emplace_back(),
                            OfType(one.get<std::string>(), schema, place, depth));
  }
  return Choice(std::move(choices));
}

SchemaCompiler::Part SchemaCompiler::OfType(std::string_view type, const Json& schema,
                                            const std::string& place, int depth) {
  if (type == "object") return OfObject(schema, place, depth);
  if (type == "array") return OfArray(schema, place, depth);
  if (type == "string") return OfString(schema, place);
  if (type == "integer") return OfInteger(schema, place);
  if (type == "number") return OfNumber(schema, place);
  if (type == "boolean") return Choice({Text("true"), Text("false")});
  if (type == "null") return Text("null");
  return BadSchema(place, absl::StrCat("there is no \"type\" ", Sv(type)));
}

}  // namespace tandem::coordinator::grammar
