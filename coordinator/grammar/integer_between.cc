#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "coordinator/grammar/json.h"

namespace tandem::coordinator::grammar {
namespace {

Expression AnyDigits(size_t count) {
  return Repeat(Class({{'0', '9'}}), static_cast<uint32_t>(count), static_cast<uint32_t>(count));
}

// Digits from `least` to `most`, which have the same number of digits.
Expression OfEqualLength(std::string_view least, std::string_view most) {
  const bool any = least.find_first_not_of('0') == std::string_view::npos &&
                   most.find_first_not_of('9') == std::string_view::npos;
  if (any) return AnyDigits(least.size());
  const auto digit = [](char c) { return static_cast<uint32_t>(c); };
  const std::string_view rest_least = least.substr(1), rest_most = most.substr(1);
  if (least[0] == most[0]) {
    return Sequence({Text(std::string(1, least[0])), OfEqualLength(rest_least, rest_most)});
  }
  const std::string zeros(rest_least.size(), '0'), nines(rest_least.size(), '9');
  std::vector<Expression> choices = {
      Sequence({Text(std::string(1, least[0])), OfEqualLength(rest_least, nines)}),
      Sequence({Text(std::string(1, most[0])), OfEqualLength(zeros, rest_most)})};
  if (digit(least[0]) + 1 < digit(most[0])) {
    choices.push_back(Sequence(
        {Class({{digit(least[0]) + 1, digit(most[0]) - 1}}), AnyDigits(rest_least.size())}));
  }
  return Choice(std::move(choices));
}

// 0 <= least <= most
Expression NaturalBetween(uint64_t least, uint64_t most) {
  const std::string last = std::to_string(most);
  std::vector<Expression> choices;
  for (std::string first = std::to_string(least); first.size() <= last.size();) {
    const std::string nines(first.size(), '9');
    choices.push_back(OfEqualLength(first, first.size() == last.size() ? last : nines));
    first = "1" + std::string(first.size(), '0');
  }
  return Choice(std::move(choices));
}

}  // namespace

Expression IntegerBetween(int64_t least, int64_t most) {
  std::vector<Expression> choices;
  if (least < 0) {
    const auto nearest = static_cast<uint64_t>(most < 0 ? -most : 1);
    choices.push_back(
        Sequence({Text("-"), NaturalBetween(nearest, static_cast<uint64_t>(-least))}));
  }
  if (most >= 0) {
    choices.push_back(NaturalBetween(static_cast<uint64_t>(std::max<int64_t>(least, 0)),
                                     static_cast<uint64_t>(most)));
  }
  return Choice(std::move(choices));
}

}  // namespace tandem::coordinator::grammar
