// What a schema says of numbers.
#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/grammar/decimal.h"
#include "coordinator/grammar/json.h"
#include "coordinator/grammar/schema_compiler.h"

namespace tandem::coordinator::grammar {
namespace {

constexpr size_t kMostDigits = 18;

using Bound = std::optional<NumberBound>;

NumberBound Negated(NumberBound bound) {
  bound.value.negative = !bound.value.negative && !bound.value.IsZero();
  return bound;
}

// The bound that two keywords set, the second without the number itself; as one from below, where
// `is_least` is false of the negated numbers. None where all numbers of the grammar meet it.
absl::StatusOr<Bound> LeastOf(const Json& schema, const char* inclusive, const char* exclusive,
                              bool is_least, const std::string& place) {
  Bound tightest;
  for (const char* keyword : {inclusive, exclusive}) {
    if (!schema.contains(keyword)) continue;
    const auto bad = [&](const char* what) {
      return BadSchema(place, absl::StrCat("\"", keyword, "\" ", what));
    };
    if (!IsNumber(schema[keyword])) return bad("is not a number");
    const auto value = DecimalOf(JsonText(schema[keyword]));
    if (!value.has_value()) return bad("has too large an exponent");
    NumberBound bound{*value, keyword == inclusive};
    if (!is_least) bound = Negated(bound);
    if (bound.value.whole.size() > kMostDigits) {
      if (bound.value.negative) continue;
      return bad("has more than 18 digits before the point");
    }
    if (bound.value.fraction.size() > kMostDigits) {
      return bad("has more than 18 digits after the point");
    }
    const auto order =
        tightest.has_value() ? bound.value <=> tightest->value : std::strong_ordering::greater;
    if (order > 0 || (order == 0 && !bound.inclusive)) tightest = bound;
  }
  return tightest;
}
absl::StatusOr<Bound> Least(const Json& schema, const std::string& place) {
  return LeastOf(schema, "minimum", "exclusiveMinimum", /*is_least=*/true, place);
}
// Negated.
absl::StatusOr<Bound> Most(const Json& schema, const std::string& place) {
  return LeastOf(schema, "maximum", "exclusiveMaximum", /*is_least=*/false, place);
}

// The least integer that meets the bound.
int64_t LeastInteger(const Bound& bound) {
  if (!bound.has_value()) return -kMostInteger;
  const auto& [negative, whole, fraction] = bound->value;
  int64_t magnitude = 0;
  std::from_chars(whole.data(), whole.data() + whole.size(), magnitude);
  if (negative) return -magnitude + (fraction.empty() && !bound->inclusive ? 1 : 0);
  return magnitude + (fraction.empty() && bound->inclusive ? 0 : 1);
}

}  // namespace

absl::StatusOr<Expression> OfInteger(const Json& schema, const std::string& place) {
  TANDEM_ASSIGN_OR_RETURN(const Bound least, Least(schema, place));
  TANDEM_ASSIGN_OR_RETURN(const Bound negated_most, Most(schema, place));
  if (!least.has_value() && !negated_most.has_value()) return JsonInteger();
  const int64_t first = LeastInteger(least), last = -LeastInteger(negated_most);
  if (first > last) return BadSchema(place, "no integer is within its bounds");
  return IntegerBetween(first, last);
}

absl::StatusOr<Expression> OfNumber(const Json& schema, const std::string& place) {
  TANDEM_ASSIGN_OR_RETURN(const Bound least, Least(schema, place));
  TANDEM_ASSIGN_OR_RETURN(const Bound negated_most, Most(schema, place));
  // A bound that all numbers without exponents meet may be beyond those with one.
  if (!SpeaksOfNumbers(schema)) return JsonNumber();
  const Bound most = negated_most.has_value() ? Bound(Negated(*negated_most)) : std::nullopt;
  if (least.has_value() && most.has_value() &&
      (least->value > most->value ||
       (least->value == most->value && !(least->inclusive && most->inclusive)))) {
    return BadSchema(place, "no number is within its bounds");
  }
  return NumberBetween(least, most);
}

}  // namespace tandem::coordinator::grammar
