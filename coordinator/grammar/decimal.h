// Decimal: the exact value of a number as a JSON text writes it. Internal to this folder.
#ifndef TANDEM_COORDINATOR_GRAMMAR_DECIMAL_H_
#define TANDEM_COORDINATOR_GRAMMAR_DECIMAL_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "coordinator/grammar/expression.h"

namespace tandem::coordinator::grammar {

struct Decimal {
  bool negative = false;  // never of zero
  std::string whole;      // without zeros at the beginning: empty below 1
  std::string fraction;   // without zeros at the end

  bool IsZero() const { return whole.empty() && fraction.empty(); }
  std::strong_ordering operator<=>(const Decimal& other) const;
  bool operator==(const Decimal&) const = default;
};

// Nothing if its exponent is beyond 400 either way: no such number is one to everyone.
std::optional<Decimal> DecimalOf(std::string_view json_number);

// A bound of numbers, with the number itself or without.
struct NumberBound {
  Decimal value;
  bool inclusive = true;
};
// JSON numbers without exponents, with at most 18 digits before the point, from `least` to `most`
// where there are such. REQUIRES: there are numbers between them; bounds have at most 18 digits
// before and after the point.
Expression NumberBetween(const std::optional<NumberBound>& least,
                         const std::optional<NumberBound>& most);

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_DECIMAL_H_
