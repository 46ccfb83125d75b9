// What a schema says of arrays and objects.
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/grammar/json.h"
#include "coordinator/grammar/schema_compiler.h"

namespace tandem::coordinator::grammar {
namespace {

constexpr size_t kMostKeyBytes = 256;
constexpr size_t kMostProperties = kMaxJsonMembers;

}  // namespace

SchemaCompiler::Part SchemaCompiler::OfArray(const Json& schema, const std::string& place,
                                             int depth) {
  TANDEM_ASSIGN_OR_RETURN(const uint32_t least, Count(schema, "minItems", 0, place));
  TANDEM_ASSIGN_OR_RETURN(uint32_t most, Count(schema, "maxItems", kUnbounded, place));
  TANDEM_RETURN_IF_ERROR(CheckOrder(least, most, "items", place));
  if (schema.contains("uniqueItems") && schema["uniqueItems"] != false) {
    return BadSchema(place, "\"uniqueItems\" is not supported");
  }
  // Until draft 2019-09 the first ones were a list in "items", and "additionalItems" the others.
  const Json nothing = Json::array(), anything = true;
  const bool old = schema.contains("items") && schema["items"].is_array();
  if (old && schema.contains("prefixItems")) {
    return BadSchema(place, "a list of \"items\" beside \"prefixItems\"");
  }
  const char* const first_keyword = old ? "items" : "prefixItems";
  const char* const other_keyword = old ? "additionalItems" : "items";
  const Json& first = schema.contains(first_keyword) ? schema[first_keyword] : nothing;
  const Json& other = schema.contains(other_keyword) ? schema[other_keyword] : anything;
  if (!first.is_array()) return BadSchema(place, "\"prefixItems\" is not a list");
  std::vector<Expression> items;
  for (size_t i = 0; i < first.size() && i < most; ++i) {
    const std::string at = Below(Below(place, first_keyword), i);
    TANDEM_ASSIGN_OR_RETURN(Expression item, Of(first[i], at, depth + 1));
    items.push_back(Ruled(std::move(item)));
  }
  const auto num_first = static_cast<uint32_t>(items.size());
  if (other == false) most = std::min(most, num_first);
  TANDEM_RETURN_IF_ERROR(CheckOrder(least, most, "items", place));
  Expression rest = Text("");
  if (most > num_first) {
    TANDEM_ASSIGN_OR_RETURN(Expression item, Of(other, Below(place, other_keyword), depth + 1));
    item = Ruled(std::move(item));
    Expression more = Ruled(AfterComma(item));
    if (num_first == 0) {
      return InBrackets('[', Listed(std::move(item), std::move(more), least, most), ']');
    }
    rest = Repeat(std::move(more), least > num_first ? least - num_first : 0,
                  most == kUnbounded ? most : most - num_first);
  }
  for (uint32_t i = num_first; i-- > 0;) {
    Expression here = Then(std::move(items[i]), Ruled(std::move(rest)));
    if (i > 0) here = AfterComma(std::move(here));
    rest = i < least ? std::move(here) : Optional(std::move(here));
  }
  return InBrackets('[', std::move(rest), ']');
}

absl::StatusOr<std::vector<SchemaCompiler::Property>> SchemaCompiler::Properties(
    const Json& schema, const Expression& other, const std::string& place, int depth,
    std::vector<std::string>* names) {
  const Json none = Json::object(), nothing = Json::array();
  const Json& properties = schema.contains("properties") ? schema["properties"] : none;
  const Json& required = schema.contains("required") ? schema["required"] : nothing;
  if (!properties.is_object()) return BadSchema(place, "\"properties\" is not an object");
  if (!required.is_array()) return BadSchema(place, "\"required\" is not a list");
  absl::flat_hash_set<std::string> left;  // required ones that "properties" has not
  for (const Json& name : required) {
    if (!name.is_string()) return BadSchema(place, "\"required\" is a list of names");
    left.insert(name.get<std::string>());
  }
  if (left.size() > kMostProperties) {
    return BadSchema(place, absl::StrCat("\"required\" has more than ", kMostProperties, " names"));
  }
  std::vector<Property> out;
  const auto add = [&](const std::string& name, Expression value, bool is_required) {
    names->push_back(name);
    out.push_back({Ruled(Member(Text(Json(name).dump()), std::move(value))), is_required});
  };
  for (const auto& [name, value] : properties.get_ref<const Json::object_t&>()) {
    TANDEM_ASSIGN_OR_RETURN(Expression of_value,
                            Of(value, Below(Below(place, "properties"), name), depth + 1));
    add(name, std::move(of_value), left.erase(name) > 0);
  }
  for (const Json& name : required) {
    if (left.erase(name.get<std::string>()) > 0) add(name.get<std::string>(), other, true);
  }
  TANDEM_RETURN_IF_ERROR(Spend(8 * out.size(), place));
  return out;
}

SchemaCompiler::Part SchemaCompiler::OtherMember(const std::vector<std::string>& names,
                                                 Expression value, const std::string& place) {
  size_t bytes = 0;
  for (const std::string& name : names) {
    if (name.size() > kMostKeyBytes) {
      return BadSchema(place, absl::StrCat("a name has more than ", kMostKeyBytes,
                                           " bytes beside other members"));
    }
    bytes += name.size();
  }
  TANDEM_RETURN_IF_ERROR(Spend(8 * bytes, place));
  return Ruled(Member(StringExcept(names), std::move(value)));
}

SchemaCompiler::Part SchemaCompiler::OfObject(const Json& schema, const std::string& place,
                                              int depth) {
  const Json closed = false, open = true;
  const bool says_none =
      schema.contains("unevaluatedProperties") && schema["unevaluatedProperties"] == false;
  if (schema.contains("unevaluatedProperties") && !says_none) {
    return BadSchema(place, "\"unevaluatedProperties\" is supported as false only");
  }
  const Json& others = schema.contains("additionalProperties")      ? schema["additionalProperties"]
                       : schema.contains("properties") || says_none ? closed
                                                                    : open;
  TANDEM_ASSIGN_OR_RETURN(Expression value,
                          Of(others, Below(place, "additionalProperties"), depth + 1));
  value = Ruled(std::move(value));
  std::vector<std::string> names;
  TANDEM_ASSIGN_OR_RETURN(std::vector<Property> properties,
                          Properties(schema, value, place, depth, &names));
  std::optional<Expression> other;
  if (others != false) {
    TANDEM_ASSIGN_OR_RETURN(other, OtherMember(names, std::move(value), place));
  }
  return InBrackets('{', Members(std::move(properties), other), '}');
}

Expression SchemaCompiler::Members(std::vector<Property> properties,
                                   const std::optional<Expression>& other) {
  // From the end: what may come after a member, and the ways to begin with one. A rule each, as
  // many ways have the same end.
  Expression after = other.has_value() ? Repeat(AfterComma(*other), 0) : Text("");
  Expression beginnings = Choice({});
  if (other.has_value()) beginnings.parts.push_back(Then(*other, after));
  bool may_be_empty = true;
  for (size_t i = properties.size(); i-- > 0;) {
    const auto& [member, required] = properties[i];
    if (required) beginnings.parts.clear();
    may_be_empty &= !required;
    const Expression rest = Ruled(std::move(after));
    beginnings.parts.push_back(Then(member, rest));
    Expression here = AfterComma(member);
    after = Then(required ? std::move(here) : Optional(std::move(here)), rest);
  }
  if (may_be_empty) beginnings.parts.push_back(Text(""));
  return beginnings;
}

}  // namespace tandem::coordinator::grammar
