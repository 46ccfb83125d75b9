// By definition: where a string of an expression that begins at a place of a text may end. Takes
// exponential time.
#ifndef TANDEM_TESTS_COORDINATOR_GRAMMAR_REFERENCE_H_
#define TANDEM_TESTS_COORDINATOR_GRAMMAR_REFERENCE_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "coordinator/grammar/expression.h"

namespace tandem::coordinator::grammar {

class Reference {
 public:
  explicit Reference(const Grammar& grammar) : grammar_(grammar) {}

  bool Matches(std::string_view text) const {
    return Ends(grammar_.rules[0], text, 0).contains(text.size());
  }

 private:
  using Places = std::set<size_t>;

  Places Ends(const Expression& e, std::string_view text, size_t at) const {
    switch (e.kind) {
      case Expression::Kind::kText:
        return text.substr(at).starts_with(e.text) ? Places{at + e.text.size()} : Places{};
      case Expression::Kind::kClass:
        return EndOfCharacter(e, text, at);
      case Expression::Kind::kSequence: {
        Places places = {at};
        for (const Expression& part : e.parts) places = After(part, text, places);
        return places;
      }
      case Expression::Kind::kChoice: {
        Places places;
        for (const Expression& part : e.parts) places.merge(Ends(part, text, at));
        return places;
      }
      case Expression::Kind::kRepeat:
        return Repeated(e, text, at);
      case Expression::Kind::kRule:
        return OfRule(e.rule, text, at);
    }
    return {};
  }
  // A rule that begins with itself has no string that it would not have without that.
  Places OfRule(RuleIndex rule, std::string_view text, size_t at) const {
    if (!open_.insert({rule, at}).second) return {};
    Places places = Ends(grammar_.rules[rule], text, at);
    open_.erase({rule, at});
    return places;
  }
  Places After(const Expression& e, std::string_view text, const Places& places) const {
    Places after;
    for (const size_t place : places) after.merge(Ends(e, text, place));
    return after;
  }
  Places Repeated(const Expression& e, std::string_view text, size_t at) const {
    Places places = {at}, all;
    if (e.least == 0) all = places;
    for (uint32_t times = 1; times <= e.most && !places.empty(); ++times) {
      places = After(e.parts[0], text, places);
      if (times < e.least) continue;
      const size_t before = all.size();
      all.insert(places.begin(), places.end());
      if (all.size() == before) break;  // no more is new
    }
    return all;
  }
  static Places EndOfCharacter(const Expression& e, std::string_view text, size_t at) {
    if (at == text.size()) return {};
    const auto byte = [&](size_t i) -> uint32_t { return static_cast<uint8_t>(text[at + i]); };
    const size_t size = byte(0) < 0x80 ? 1 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
    if (at + size > text.size()) return {};
    uint32_t character = size == 1 ? byte(0) : byte(0) & (0x7fu >> size);
    for (size_t i = 1; i < size; ++i) character = character << 6 | (byte(i) & 0x3f);
    for (const CharacterRange& range : e.ranges) {
      if (range.first <= character && character <= range.last) return {at + size};
    }
    return {};
  }

  const Grammar& grammar_;
  mutable std::set<std::pair<RuleIndex, size_t>> open_;
};

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_TESTS_COORDINATOR_GRAMMAR_REFERENCE_H_
