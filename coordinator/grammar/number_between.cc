#include <charconv>
#include <utility>

#include "coordinator/grammar/decimal.h"
#include "coordinator/grammar/json.h"

namespace tandem::coordinator::grammar {
namespace {

constexpr uint32_t kMostDigits = 18;

// A bound of the digits after a point.
struct FractionBound {
  std::string_view digits;  // without zeros at the end
  bool inclusive;

  FractionBound Rest() const { return {digits.substr(digits.empty() ? 0 : 1), inclusive}; }
  uint32_t First() const { return digits.empty() ? '0' : static_cast<uint32_t>(digits[0]); }
};
using Side = std::optional<FractionBound>;

Expression AnyDigits(uint32_t least) { return Repeat(Class({{'0', '9'}}), least, kMostDigits); }
Side Rest(const Side& side) { return side.has_value() ? Side(side->Rest()) : side; }

// Whether the number may end where these are the bounds of its further digits.
bool MayEnd(const Side& least, const Side& most) {
  return !least.has_value() && (!most.has_value() || !most->digits.empty() || most->inclusive);
}

// Digits between the bounds; none where `may_end` and zeros would do.
Expression Fraction(Side least, const Side& most, bool may_end) {
  if (least.has_value() && least->digits.empty() && least->inclusive) least.reset();
  if (!least.has_value() && !most.has_value()) return AnyDigits(may_end ? 0 : 1);
  if (most.has_value() && most->digits.empty()) {
    const bool zero = most->inclusive && !least.has_value();
    return zero ? Repeat(Text("0"), may_end ? 0 : 1, kMostDigits) : Choice({});
  }
  if (least.has_value() && least->digits.empty() && !most.has_value()) {
    return Then(Repeat(Text("0"), 0, kMostDigits - 1), Then(Class({{'1', '9'}}), AnyDigits(0)));
  }
  Expression choice = Choice({});
  if (may_end && MayEnd(least, most)) choice.parts.push_back(Text(""));
  const auto with = [&](uint32_t digit, const Side& from, const Side& to) {
    choice.parts.push_back(Then(Text(std::string(1, static_cast<char>(digit))),
                                Fraction(Rest(from), Rest(to), /*may_end=*/true)));
  };
  uint32_t first = least.has_value() ? least->First() : '0';
  uint32_t last = most.has_value() ? most->First() : '9';
  if (first == last) {
    with(first, least, most);
    return choice;
  }
  if (least.has_value()) with(first++, least, std::nullopt);
  if (most.has_value()) with(last--, std::nullopt, most);
  if (first <= last) choice.parts.push_back(Then(Class({{first, last}}), AnyDigits(0)));
  return choice;
}

// With the point, or nothing.
Expression PointAndFraction(Side least, const Side& most) {
  if (least.has_value() && least->digits.empty() && least->inclusive) least.reset();
  const bool may_be_none = MayEnd(least, most);
  Expression point = Then(Text("."), Fraction(least, most, /*may_end=*/false));
  return may_be_none ? Optional(std::move(point)) : point;
}

int64_t WholeOf(const Decimal& decimal) {
  int64_t whole = 0;
  std::from_chars(decimal.whole.data(), decimal.whole.data() + decimal.whole.size(), whole);
  return whole;
}

// Of the magnitudes of bounds.
Expression MagnitudeBetween(const std::optional<NumberBound>& least,
                            const std::optional<NumberBound>& most) {
  const auto side = [](const std::optional<NumberBound>& bound) {
    return bound.has_value() ? Side({bound->value.fraction, bound->inclusive}) : std::nullopt;
  };
  const int64_t first = least.has_value() ? WholeOf(least->value) : 0;
  const int64_t last = most.has_value() ? WholeOf(most->value) : kMostInteger;
  if (first == last) {
    return Then(Text(std::to_string(first)), PointAndFraction(side(least), side(most)));
  }
  Expression choice = Choice({});
  choice.parts.push_back(
      Then(Text(std::to_string(first)), PointAndFraction(side(least), std::nullopt)));
  choice.parts.push_back(
      Then(Text(std::to_string(last)), PointAndFraction(std::nullopt, side(most))));
  if (last - first > 1) {
    choice.parts.push_back(
        Then(IntegerBetween(first + 1, last - 1), PointAndFraction(std::nullopt, std::nullopt)));
  }
  return choice;
}

std::optional<NumberBound> Magnitude(std::optional<NumberBound> bound) {
  if (bound.has_value()) bound->value.negative = false;
  return bound;
}

}  // namespace

Expression NumberBetween(const std::optional<NumberBound>& least,
                         const std::optional<NumberBound>& most) {
  const auto is_below_zero = [](const NumberBound& b) { return b.value.negative; };
  const auto excludes_zero = [](const NumberBound& b) { return b.value.IsZero() && !b.inclusive; };
  Expression choice = Choice({});
  if (!most.has_value() || !(is_below_zero(*most) || excludes_zero(*most))) {
    const bool bounded = least.has_value() && !is_below_zero(*least);
    choice.parts.push_back(MagnitudeBetween(bounded ? least : std::nullopt, most));
  }
  if (!least.has_value() || is_below_zero(*least)) {
    const bool bounded = most.has_value() && (is_below_zero(*most) || excludes_zero(*most));
    choice.parts.push_back(Then(
        Text("-"), MagnitudeBetween(Magnitude(bounded ? most : std::nullopt), Magnitude(least))));
  }
  return choice;
}

}  // namespace tandem::coordinator::grammar
