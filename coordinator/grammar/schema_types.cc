// What a schema says of strings, numbers, arrays and objects.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "coordinator/grammar/json.h"
#include "coordinator/grammar/schema_compiler.h"

namespace tandem::coordinator::grammar {
namespace {

constexpr int64_t kMostInteger = 999'999'999'999'999'999;  // 18 digits
constexpr uint32_t kMostCount = 1 << 16;
constexpr size_t kMostKeyBytes = 256;
// Of one object; names are looked up one by one.
constexpr size_t kMostProperties = 2048;

// A length or count of the schema, or `otherwise`.
absl::StatusOr<uint32_t> Count(const Json& schema, const char* keyword, uint32_t otherwise,
                               const std::string& place) {
  if (!schema.contains(keyword)) return otherwise;
  const Json& value = schema[keyword];
  const double count = value.is_number() ? value.get<double>() : -1;
  if (count < 0 || count > kMostCount || count != std::floor(count)) {
    return BadSchema(place, absl::StrCat("\"", keyword, "\" is ", value.dump(),
                                         ", need a whole number from 0 to ", kMostCount));
  }
  return static_cast<uint32_t>(count);
}

absl::Status CheckOrder(uint32_t least, uint32_t most, std::string_view what,
                        const std::string& place) {
  if (least <= most) return absl::OkStatus();
  return BadSchema(place, absl::StrCat("at least ", least, " and at most ", most, " ", Sv(what)));
}

Expression TwoDigits(int64_t least, int64_t most) {
  std::vector<Expression> choices;
  if (least < 10)
    choices.push_back(Sequence({Text("0"), IntegerBetween(least, std::min<int64_t>(most, 9))}));
  if (most >= 10) choices.push_back(IntegerBetween(std::max<int64_t>(least, 10), most));
  return Choice(std::move(choices));
}
// RFC 3339, from the year 1000 on, with the days that each month has; February has 28.
Expression Date() {
  const auto month = [](std::initializer_list<const char*> names, int64_t days) {
    std::vector<Expression> months;
    for (const char* name : names) months.push_back(Text(name));
    return Sequence({Choice(std::move(months)), Text("-"), TwoDigits(1, days)});
  };
  return Sequence({IntegerBetween(1000, 9999), Text("-"),
                   Choice({month({"01", "03", "05", "07", "08", "10", "12"}, 31),
                           month({"04", "06", "09", "11"}, 30), month({"02"}, 28)})});
}
Expression Time() {
  const Expression zone = Choice(
      {Text("Z"),
       Sequence({Class({{'+', '+'}, {'-', '-'}}), TwoDigits(0, 23), Text(":"), TwoDigits(0, 59)})});
  return Sequence({TwoDigits(0, 23), Text(":"), TwoDigits(0, 59), Text(":"), TwoDigits(0, 59),
                   Optional(Sequence({Text("."), Repeat(Class({{'0', '9'}}), 1, 9)})), zone});
}
Expression Uuid() {
  const auto hex = [](uint32_t count) {
    return Repeat(Class({{'0', '9'}, {'a', 'f'}}), count, count);
  };
  return Sequence(
      {hex(8), Text("-"), hex(4), Text("-"), hex(4), Text("-"), hex(4), Text("-"), hex(12)});
}
Expression InQuotes(Expression content) {
  return Sequence({Text("\""), std::move(content), Text("\"")});
}

// The bound of integers that two keywords set, the second without the bound itself.
absl::StatusOr<int64_t> IntegerBound(const Json& schema, const char* inclusive,
                                     const char* exclusive, bool is_least,
                                     const std::string& place) {
  int64_t bound = is_least ? -kMostInteger : kMostInteger;
  for (const char* keyword : {inclusive, exclusive}) {
    if (!schema.contains(keyword)) continue;
    const Json& value = schema[keyword];
    if (!value.is_number()) {
      return BadSchema(place, absl::StrCat("\"", keyword, "\" is not a number"));
    }
    const double number = value.get<double>();
    if (!(std::abs(number) <= 1e18)) {
      return BadSchema(place, absl::StrCat("\"", keyword, "\" has more than 18 digits"));
    }
    // Doubles hold no 18 digits; integers are taken as they are.
    const bool whole = value.is_number_integer();
    int64_t limit = whole ? value.get<int64_t>()
                          : static_cast<int64_t>(is_least ? std::ceil(number) : std::floor(number));
    const bool meets = whole || static_cast<double>(limit) == number;
    if (keyword == exclusive && meets) limit += is_least ? 1 : -1;
    bound = is_least ? std::max(bound, limit) : std::min(bound, limit);
  }
  return bound;
}

}  // namespace

SchemaCompiler::Part SchemaCompiler::OfString(const Json& schema, const std::string& place) {
  TANDEM_ASSIGN_OR_RETURN(const uint32_t least, Count(schema, "minLength", 0, place));
  TANDEM_ASSIGN_OR_RETURN(const uint32_t most, Count(schema, "maxLength", kUnbounded, place));
  TANDEM_RETURN_IF_ERROR(CheckOrder(least, most, "characters", place));
  const std::string format = schema.contains("format") && schema["format"].is_string()
                                 ? schema["format"].get<std::string>()
                                 : "";
  std::optional<Expression> content;
  if (format == "date") content = Date();
  if (format == "time") content = Time();
  if (format == "date-time") content = Sequence({Date(), Text("T"), Time()});
  if (format == "uuid") content = Uuid();
  if (!content.has_value()) return JsonString(least, most);
  if (least > 0 || most != kUnbounded) {
    return BadSchema(place, "lengths beside \"format\" are not supported");
  }
  return InQuotes(*std::move(content));
}

SchemaCompiler::Part SchemaCompiler::OfInteger(const Json& schema, const std::string& place) {
  TANDEM_ASSIGN_OR_RETURN(const int64_t least,
                          IntegerBound(schema, "minimum", "exclusiveMinimum", true, place));
  TANDEM_ASSIGN_OR_RETURN(const int64_t most,
                          IntegerBound(schema, "maximum", "exclusiveMaximum", false, place));
  if (least > most) return BadSchema(place, "no integer is within its bounds");
  return IntegerBetween(least, most);
}

SchemaCompiler::Part SchemaCompiler::OfNumber(const Json& schema, const std::string& place) {
  for (const char* keyword : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
    if (schema.contains(keyword)) {
      return BadSchema(place, absl::StrCat("\"", keyword, "\" is supported of integers only"));
    }
  }
  return JsonNumber();
}

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
    const std::string at = absl::StrCat(place, "/", first_keyword, "/", i);
    TANDEM_ASSIGN_OR_RETURN(items.emplace_back(), Of(first[i], at, depth + 1));
  }
  const auto num_first = static_cast<uint32_t>(items.size());
  if (other == false) most = std::min(most, num_first);
  TANDEM_RETURN_IF_ERROR(CheckOrder(least, most, "items", place));
  Expression rest = Text("");
  if (most > num_first) {
    TANDEM_ASSIGN_OR_RETURN(Expression item,
                            Of(other, absl::StrCat(place, "/", other_keyword), depth + 1));
    item = Rule(NewRule(std::move(item)));
    if (num_first == 0) return InBrackets('[', Listed(item, least, most), ']');
    rest = Repeat(Sequence({Text(","), Blank(), std::move(item)}),
                  least > num_first ? least - num_first : 0,
                  most == kUnbounded ? most : most - num_first);
  }
  for (uint32_t i = num_first; i-- > 0;) {
    Expression here =
        Sequence({Rule(NewRule(std::move(items[i]))), Rule(NewRule(std::move(rest)))});
    if (i > 0) here = Sequence({Text(","), Blank(), std::move(here)});
    rest = i < least ? std::move(here) : Optional(std::move(here));
  }
  return InBrackets('[', std::move(rest), ']');
}

absl::StatusOr<std::vector<SchemaCompiler::Property>> SchemaCompiler::Properties(
    const Json& schema, const Json& others, const std::string& place, int depth) {
  const Json none = Json::object(), nothing = Json::array();
  Json properties = schema.contains("properties") ? schema["properties"] : none;
  const Json& required = schema.contains("required") ? schema["required"] : nothing;
  if (!properties.is_object()) return BadSchema(place, "\"properties\" is not an object");
  if (!required.is_array()) return BadSchema(place, "\"required\" is not a list");
  if (properties.size() > kMostProperties || required.size() > kMostProperties) {
    return BadSchema(place, absl::StrCat("more than ", kMostProperties, " properties"));
  }
  for (const Json& key : required) {
    if (!key.is_string()) return BadSchema(place, "\"required\" is a list of names");
    if (!properties.contains(key.get<std::string>())) properties[key.get<std::string>()] = others;
  }
  std::vector<Property> out;
  for (const auto& [key, value] : properties.items()) {
    TANDEM_ASSIGN_OR_RETURN(Expression of_value,
                            Of(value, absl::StrCat(place, "/properties/", key), depth + 1));
    const bool is_required = std::ranges::find(required, Json(key)) != required.end();
    if (value == false && !is_required) continue;
    out.push_back(
        {Rule(NewRule(Member(Text(Json(key).dump()), std::move(of_value)))), is_required});
  }
  return out;
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
  TANDEM_ASSIGN_OR_RETURN(const std::vector<Property> properties,
                          Properties(schema, others, place, depth));
  std::optional<Expression> other;
  if (others != false) {
    std::vector<std::string> keys;
    if (schema.contains("properties")) {
      for (const auto& [key, value] : schema["properties"].items()) keys.push_back(key);
    }
    if (schema.contains("required")) {
      for (const Json& key : schema["required"]) keys.push_back(key.get<std::string>());
    }
    if (std::ranges::any_of(keys, [](const auto& key) { return key.size() > kMostKeyBytes; })) {
      return BadSchema(place, absl::StrCat("a name has more than ", kMostKeyBytes,
                                           " bytes beside other members"));
    }
    TANDEM_ASSIGN_OR_RETURN(Expression value,
                            Of(others, absl::StrCat(place, "/additionalProperties"), depth + 1));
    other = Rule(NewRule(Member(StringExcept(keys), std::move(value))));
  }
  return InBrackets('{', Members(properties, other), '}');
}

Expression SchemaCompiler::Members(const std::vector<Property>& properties,
                                   const std::optional<Expression>& other) {
  const auto after_comma = [](Expression member) {
    return Sequence({Text(","), Blank(), std::move(member)});
  };
  // From the end: what may come after a member, and the ways to begin with one. A rule each, as
  // many ways have the same end.
  Expression after = other.has_value() ? Repeat(after_comma(*other), 0) : Text("");
  std::vector<Expression> beginnings;
  if (other.has_value()) beginnings.push_back(Sequence({*other, after}));
  bool may_be_empty = true;
  for (size_t i = properties.size(); i-- > 0;) {
    const auto& [member, required] = properties[i];
    if (required) beginnings.clear();
    may_be_empty &= !required;
    const Expression rest = Rule(NewRule(std::move(after)));
    beginnings.push_back(Sequence({member, rest}));
    Expression here = after_comma(member);
    after = Sequence({required ? std::move(here) : Optional(std::move(here)), rest});
  }
  if (may_be_empty) beginnings.push_back(Text(""));
  return Choice(std::move(beginnings));
}

}  // namespace tandem::coordinator::grammar
