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

bool All(char digit, std::string_view digits) {
  return digits.find_first_not_of(digit) == std::string_view::npos;
}

// Digits from `least` to `most`, which have the same number of digits.
Expression OfEqualLength(std::string_view least, std::string_view most) {
  if (All('0', least) && All('9', most)) return AnyDigits(least.size());
  const auto digit = [](char c) { return static_cast<uint32_t>(c); };
  const std::string_view rest_least = least.substr(1), rest_most = most.substr(1);
  if (least[0] == most[0]) {
    return Then(Text(std::string(1, least[0])), OfEqualLength(rest_least, rest_most));
  }
  const std::string zeros(rest_least.size(), '0'), nines(rest_least.size(), '9');
  std::vector<Expression> choices;
  // First digits after which any others may come.
  uint32_t first = digit(least[0]), last = digit(most[0]);
  if (!All('0', rest_least)) {
    choices.push_back(Then(Text(std::string(1, least[0])), OfEqualLength(rest_least, nines)));
    ++first;
  }
  if (!All('9', rest_most)) {
    choices.push_back(Then(Text(std::string(1, most[0])), OfEqualLength(zeros, rest_most)));
    --last;
  }
  if (first <= last) choices.push_back(Then(Class({{first, last}}), AnyDigits(rest_least.size())));
  return Choice(std::move(choices));
}

// 0 <= least <= most
Expression NaturalBetween(uint64_t least, uint64_t most) {
  const std::string first = std::to_string(least), last = std::to_string(most);
  if (first.size() == last.size()) return OfEqualLength(first, last);
  std::vector<Expression> choices;
  choices.push_back(OfEqualLength(first, std::string(first.size(), '9')));
  choices.push_back(OfEqualLength("1" + std::string(last.size() - 1, '0'), last));
  if (last.size() - first.size() > 1) {
    choices.push_back(
        Then(Class({{'1', '9'}}), Repeat(Class({{'0', '9'}}), static_cast<uint32_t>(first.size()),
                                         static_cast<uint32_t>(last.size() - 2))));
  }
  return Choice(std::move(choices));
}

}  // namespace

Expression IntegerBetween(int64_t least, int64_t most) {
  std::vector<Expression> choices;
  if (least < 0) {
    const auto nearest = static_cast<uint64_t>(most < 0 ? -most : 1);
    choices.push_back(Then(Text("-"), NaturalBetween(nearest, static_cast<uint64_t>(-least))));
  }
  if (most >= 0) {
    choices.push_back(NaturalBetween(static_cast<uint64_t>(std::max<int64_t>(least, 0)),
                                     static_cast<uint64_t>(most)));
  }
  return Choice(std::move(choices));
}

}  // namespace tandem::coordinator::grammar
