#include "coordinator/grammar/decimal.h"

#include "absl/strings/numbers.h"
#include "common/base/strings.h"

namespace tandem::coordinator::grammar {
namespace {

constexpr int kMostExponent = 400;

std::strong_ordering CompareMagnitudes(const Decimal& a, const Decimal& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() <=> b.whole.size();
  if (a.whole != b.whole) return a.whole <=> b.whole;
  return a.fraction <=> b.fraction;
}

}  // namespace

std::strong_ordering Decimal::operator<=>(const Decimal& other) const {
  if (negative != other.negative) {
    return negative ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  return negative ? CompareMagnitudes(other, *this) : CompareMagnitudes(*this, other);
}

std::optional<Decimal> DecimalOf(std::string_view json_number) {
  Decimal decimal;
  decimal.negative = json_number.starts_with("-");
  if (decimal.negative) json_number.remove_prefix(1);
  int exponent = 0;
  const size_t e = json_number.find_first_of("eE");
  if (e != std::string_view::npos) {
    std::string_view digits = json_number.substr(e + 1);
    if (digits.starts_with("+")) digits.remove_prefix(1);
    if (!absl::SimpleAtoi(Sv(digits), &exponent)) return std::nullopt;
    if (exponent > kMostExponent || exponent < -kMostExponent) return std::nullopt;
    json_number = json_number.substr(0, e);
  }
  const size_t point = json_number.find('.');
  std::string& whole = decimal.whole;
  std::string& fraction = decimal.fraction;
  whole = json_number.substr(0, point);
  if (point != std::string_view::npos) fraction = json_number.substr(point + 1);
  if (exponent > 0) {
    const auto moved = static_cast<size_t>(exponent);
    if (fraction.size() < moved) fraction.append(moved - fraction.size(), '0');
    whole += fraction.substr(0, moved);
    fraction.erase(0, moved);
  } else if (exponent < 0) {
    const auto moved = static_cast<size_t>(-exponent);
    if (whole.size() < moved) whole.insert(0, moved - whole.size(), '0');
    fraction.insert(0, whole.substr(whole.size() - moved));
    whole.erase(whole.size() - moved);
  }
  whole.erase(0, whole.find_first_not_of('0'));
  fraction.erase(fraction.find_last_not_of('0') + 1);
  if (decimal.IsZero()) decimal.negative = false;
  return decimal;
}

}  // namespace tandem::coordinator::grammar
