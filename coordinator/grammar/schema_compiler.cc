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
                                 "patternProperties",
                                 "propertyNames",
                                 "then",
                                 "unevaluatedItems"};

// A microsecond and some hundred bytes each, at most.
constexpr size_t kMostWork = 1 << 17;

}  // namespace

absl::StatusOr<Grammar> SchemaCompiler::Compile() {
  rules_ = JsonGrammar(Text("")).rules;
  references_[&root_] = kStartRule;
  TANDEM_ASSIGN_OR_RETURN(rules_[kStartRule], Of(root_, "#", 0));
  return Grammar{std::move(rules_)};
}

absl::Status SchemaCompiler::Spend(size_t work, const std::string& place) {
  work_ += work;
  if (work_ <= kMostWork) return absl::OkStatus();
  return BadSchema(place, "with its choices and references written out the schema is too large");
}

Expression SchemaCompiler::Ruled(Expression expression) {
  rules_.push_back(std::move(expression));
  return Rule(static_cast<RuleIndex>(rules_.size() - 1));
}

SchemaCompiler::Part SchemaCompiler::Of(const Json& schema, const std::string& place, int depth) {
  if (depth > kMaxSchemaDepth) {
    return BadSchema(place, absl::StrCat("schemas nest deeper than ", kMaxSchemaDepth));
  }
  TANDEM_RETURN_IF_ERROR(Spend(4 + schema.size() / 4, place));
  if (schema.is_boolean()) return schema.get<bool>() ? Rule(kValueRule) : Choice({});
  if (!schema.is_object()) return BadSchema(place, "a schema is an object, true or false");
  if (depth > 0 && schema.contains("$id")) {
    return BadSchema(place, "\"$id\" is supported at the root only");
  }
  for (const char* keyword : kRefused) {
    if (schema.contains(keyword)) {
      return BadSchema(place, absl::StrCat("\"", keyword, "\" is not supported"));
    }
  }
  if (schema.contains("$ref")) return OfReference(schema, place, depth);
  if (schema.contains("allOf")) return OfAll(schema, place, depth);
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (schema.contains(keyword)) return OfChoice(schema, keyword, place, depth);
  }
  if (schema.contains("const") || schema.contains("enum")) return OfValues(schema, place);
  return OfTypes(schema, place, depth);
}

SchemaCompiler::Part SchemaCompiler::OfValues(const Json& schema, const std::string& place) {
  if (SpeaksOfObjects(schema) || SpeaksOfArrays(schema) || SpeaksOfStrings(schema) ||
      SpeaksOfNumbers(schema)) {
    return BadSchema(place, "other keywords beside \"enum\" or \"const\" are not supported");
  }
  const Json* const only = schema.contains("const") ? &schema["const"] : nullptr;
  const Json* const listed = schema.contains("enum") ? &schema["enum"] : nullptr;
  if (listed != nullptr && !listed->is_array()) return BadSchema(place, "\"enum\" is not a list");
  Expression choice = Choice({});
  const auto add = [&](const Json& value) -> absl::Status {
    if (only != nullptr && value != *only) return absl::OkStatus();
    TANDEM_RETURN_IF_ERROR(Spend(SizeOf(value), place));
    TANDEM_ASSIGN_OR_RETURN(const bool fits, IsOfTypes(value, schema, place));
    if (fits) choice.parts.push_back(Text(JsonText(value)));
    return absl::OkStatus();
  };
  if (listed == nullptr) TANDEM_RETURN_IF_ERROR(add(*only));
  if (listed != nullptr) {
    for (const Json& value : *listed) TANDEM_RETURN_IF_ERROR(add(value));
  }
  if (choice.parts.empty()) {
    return BadSchema(place, "no value fits \"enum\", \"const\" and \"type\"");
  }
  return choice;
}

SchemaCompiler::Part SchemaCompiler::OfTypes(const Json& schema, const std::string& place,
                                             int depth) {
  if (!schema.contains("type")) {
    if (SpeaksOfObjects(schema)) return OfObject(schema, place, depth);
    if (SpeaksOfArrays(schema)) return OfArray(schema, place, depth);
    if (SpeaksOfStrings(schema)) return OfString(schema, place);
    if (SpeaksOfNumbers(schema)) return OfType("number", schema, place, depth);
    return Rule(kValueRule);
  }
  const Json& type = schema["type"];
  if (type.is_string()) return OfType(type.get<std::string>(), schema, place, depth);
  if (!type.is_array() || type.empty()) return BadSchema(place, "\"type\" is no name and no list");
  Expression choice = Choice({});
  for (const Json& one : type) {
    if (!one.is_string()) return BadSchema(place, "\"type\" is a list of names");
    if (std::ranges::count(type, one) > 1) return BadSchema(place, "\"type\" names one twice");
    TANDEM_ASSIGN_OR_RETURN(Expression of_type,
                            OfType(one.get<std::string>(), schema, place, depth));
    choice.parts.push_back(std::move(of_type));
  }
  return choice;
}

SchemaCompiler::Part SchemaCompiler::OfType(std::string_view type, const Json& schema,
                                            const std::string& place, int depth) {
  if (type == "object") return OfObject(schema, place, depth);
  if (type == "array") return OfArray(schema, place, depth);
  if (type == "string") return OfString(schema, place);
  if (type == "boolean") return Choice({Text("true"), Text("false")});
  if (type == "null") return Text("null");
  if (type != "integer" && type != "number") {
    return BadSchema(place, absl::StrCat("there is no \"type\" ", Excerpt(type)));
  }
  Part number = type == "integer" ? OfInteger(schema, place) : OfNumber(schema, place);
  if (number.ok()) TANDEM_RETURN_IF_ERROR(Spend(NumParts(*number), place));
  return number;
}

}  // namespace tandem::coordinator::grammar
