// A language of byte strings as an expression, and a grammar as one expression per rule. A regular
// expression needs one rule; what nests, as JSON does, names rules.
//
// Plain values. Characters are Unicode code points; their language is their UTF-8 form.
#ifndef TANDEM_COORDINATOR_GRAMMAR_EXPRESSION_H_
#define TANDEM_COORDINATOR_GRAMMAR_EXPRESSION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tandem::coordinator::grammar {

inline constexpr uint32_t kUnbounded = UINT32_MAX;

// The byte before the name of a control token: no character has it, so that only a grammar that
// names it has such tokens.
inline constexpr char kControlToken = '\xff';

// Code points from `first` to `last`.
struct CharacterRange {
  uint32_t first = 0;
  uint32_t last = 0;
  bool operator==(const CharacterRange&) const = default;
};

using RuleIndex = uint32_t;

struct Expression {
  enum class Kind {
    kText,      // `text`, which may be empty
    kClass,     // one character of `ranges`
    kSequence,  // `parts`, one after the other
    kChoice,    // one of `parts`; of none there is no string at all
    kRepeat,    // parts[0], from `least` to `most` times
    kRule,      // what the rule is
  };
  Kind kind = Kind::kText;
  std::string text{};
  std::vector<CharacterRange> ranges{};  // ascending, apart from each other
  std::vector<Expression> parts{};
  uint32_t least = 0;
  uint32_t most = kUnbounded;
  RuleIndex rule = 0;
};

// How many expressions it is made of, with itself.
inline size_t NumParts(const Expression& expression) {
  size_t count = 1;
  for (const Expression& part : expression.parts) count += NumParts(part);
  return count;
}

struct Grammar {
  std::vector<Expression> rules;     // the first is where a string begins
  std::vector<std::string> names{};  // of rules, for errors; may be missing
};

inline Expression Text(std::string text) { return {.text = std::move(text)}; }
inline Expression Class(std::vector<CharacterRange> ranges) {
  return {.kind = Expression::Kind::kClass, .ranges = std::move(ranges)};
}
inline Expression Sequence(std::vector<Expression> parts) {
  return {.kind = Expression::Kind::kSequence, .parts = std::move(parts)};
}
// Without the copies that a list of both takes.
inline Expression Then(Expression first, Expression second) {
  Expression both{.kind = Expression::Kind::kSequence};
  both.parts.reserve(2);
  both.parts.push_back(std::move(first));
  both.parts.push_back(std::move(second));
  return both;
}
inline Expression Choice(std::vector<Expression> parts) {
  return {.kind = Expression::Kind::kChoice, .parts = std::move(parts)};
}
inline Expression Repeat(Expression part, uint32_t least, uint32_t most = kUnbounded) {
  Expression repeat{.kind = Expression::Kind::kRepeat, .least = least, .most = most};
  repeat.parts.push_back(std::move(part));
  return repeat;
}
inline Expression Optional(Expression part) { return Repeat(std::move(part), 0, 1); }
inline Expression Rule(RuleIndex rule) { return {.kind = Expression::Kind::kRule, .rule = rule}; }

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_EXPRESSION_H_
