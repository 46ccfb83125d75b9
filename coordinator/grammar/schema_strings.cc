// What a schema says of strings.
#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "coordinator/grammar/decimal.h"
#include "coordinator/grammar/json.h"
#include "coordinator/grammar/regex.h"
#include "coordinator/grammar/schema_compiler.h"

namespace tandem::coordinator::grammar {
namespace {

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

// Of a pattern without quotes and backslashes.
Expression OfFixedRegex(const char* pattern) {
  auto expression = ExpressionOfRegex(pattern, RegexUse::kWhole);
  return expression.ok() ? *std::move(expression) : Choice({});
}
// A part of addresses (RFC 5321) that needs no quotes, and of at most 62 characters, with a name of
// a host (RFC 1123) of at most 200.
constexpr const char* kEmail =
    "[A-Za-z0-9_+-]{1,20}(\\.[A-Za-z0-9_+-]{1,20}){0,2}@"
    "([A-Za-z0-9]([A-Za-z0-9-]{0,38}[A-Za-z0-9])?\\.){1,4}[A-Za-z]{2,20}";
constexpr const char* kHostname =
    "([A-Za-z0-9]([A-Za-z0-9-]{0,38}[A-Za-z0-9])?\\.){0,4}[A-Za-z]([A-Za-z0-9-]{0,38}[A-Za-z0-9])?";
constexpr const char* kIpv4 =
    "((25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)\\.){3}(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
// RFC 3986: with a name of a host, or without an authority.
constexpr const char* kUri =
    "[A-Za-z][A-Za-z0-9+.-]{0,20}:"
    "(//[A-Za-z0-9.-]{1,200}(:\\d{1,5})?(/([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)*|"
    "/?([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+"
    "(/([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)*)"
    "(\\?([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
    "(#([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?";

}  // namespace

std::optional<Expression> StringOfFormat(std::string_view format) {
  if (format == "date") return InQuotes(Date());
  if (format == "time") return InQuotes(Time());
  if (format == "date-time") return InQuotes(Then(Date(), Then(Text("T"), Time())));
  if (format == "uuid") return InQuotes(Uuid());
  if (format == "email") return InQuotes(OfFixedRegex(kEmail));
  if (format == "hostname") return InQuotes(OfFixedRegex(kHostname));
  if (format == "ipv4") return InQuotes(OfFixedRegex(kIpv4));
  if (format == "uri") return InQuotes(OfFixedRegex(kUri));
  return std::nullopt;
}

absl::StatusOr<uint32_t> Count(const Json& schema, const char* keyword, uint32_t otherwise,
                               const std::string& place) {
  constexpr uint32_t kMostCount = 1 << 16;
  if (!schema.contains(keyword)) return otherwise;
  const Json& value = schema[keyword];
  const auto number = IsNumber(value) ? DecimalOf(JsonText(value)) : std::nullopt;
  uint32_t count = 0;
  const bool whole = number.has_value() && !number->negative && number->fraction.empty() &&
                     (number->whole.empty() || absl::SimpleAtoi(number->whole, &count));
  if (whole && count <= kMostCount) return count;
  return BadSchema(place, absl::StrCat("\"", keyword, "\" is ", Excerpt(JsonText(value)),
                                       ", need a whole number from 0 to ", kMostCount));
}

absl::Status CheckOrder(uint32_t least, uint32_t most, std::string_view what,
                        const std::string& place) {
  if (least <= most) return absl::OkStatus();
  return BadSchema(place, absl::StrCat("at least ", least, " and at most ", most, " ", Sv(what)));
}

SchemaCompiler::Part SchemaCompiler::OfString(const Json& schema, const std::string& place) {
  TANDEM_ASSIGN_OR_RETURN(const uint32_t least, Count(schema, "minLength", 0, place));
  TANDEM_ASSIGN_OR_RETURN(const uint32_t most, Count(schema, "maxLength", kUnbounded, place));
  TANDEM_RETURN_IF_ERROR(CheckOrder(least, most, "characters", place));
  const bool has_lengths = least > 0 || most != kUnbounded;
  std::optional<Expression> of_format;
  if (schema.contains("format") && schema["format"].is_string()) {
    const auto& format = schema["format"].get_ref<const std::string&>();
    const auto known = formats_.find(format);
    if (known != formats_.end()) {
      of_format = Rule(known->second);
    } else if ((of_format = StringOfFormat(format)).has_value()) {
      of_format = Ruled(*std::move(of_format));
      formats_[format] = of_format->rule;
    }
  }
  const bool has_pattern = schema.contains("pattern");
  if (has_pattern + has_lengths + of_format.has_value() > 1) {
    return BadSchema(place, "\"pattern\", \"format\" and lengths are not supported together");
  }
  if (has_pattern) return OfPattern(schema["pattern"], place);
  return of_format.has_value() ? *std::move(of_format) : JsonString(least, most);
}

SchemaCompiler::Part SchemaCompiler::OfPattern(const Json& pattern, const std::string& place) {
  if (!pattern.is_string()) return BadSchema(place, "\"pattern\" is not a string");
  const auto expression =
      ExpressionOfRegex(pattern.get_ref<const std::string&>(), RegexUse::kSearch);
  if (!expression.ok()) {
    return BadSchema(place, absl::StrCat("\"pattern\": ", expression.status().message()));
  }
  // With escapes a class is a choice of some.
  constexpr size_t kPartsOfQuoted = 4;
  TANDEM_RETURN_IF_ERROR(Spend(kPartsOfQuoted * NumParts(*expression), place));
  return InQuotes(Quoted(*expression));
}

}  // namespace tandem::coordinator::grammar
