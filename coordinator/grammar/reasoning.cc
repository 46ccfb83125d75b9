#include "coordinator/grammar/reasoning.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "coordinator/grammar/characters.h"

namespace tandem::coordinator::grammar {
namespace {

constexpr uint32_t kMaxLineEnds = 2;

absl::Status Check(const char* name, const std::string& text) {
  if (text.size() > kMaxReasoningBytes) {
    return absl::InvalidArgumentError(absl::StrCat("reasoning.", name, " has ", text.size(),
                                                   " bytes, at most ", kMaxReasoningBytes));
  }
  if (ValidUtf8Prefix(text) == text.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("reasoning.", name, " is not UTF-8"));
}

Expression LineEnds() { return Repeat(Text("\n"), 0, kMaxLineEnds); }
Expression ControlToken() { return Text(std::string(1, kControlToken)); }

// The text, of which any part may be the names of control tokens.
Expression Marker(std::string_view text) {
  std::vector<Expression> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    NextCharacter(text, &at);
    parts.push_back(Optional(ControlToken()));
    parts.push_back(Text(std::string(text.substr(begin, at - begin))));
  }
  return Sequence(std::move(parts));
}

// The rules of a text that ends with the first `end` in it: the automaton of Knuth, Morris and
// Pratt (SIAM J. Comput. 6, 1977), whose state number i has seen the first i characters of `end`.
class Search {
 public:
  // State i is rule `first` + i, and what follows the text is rule `then`.
  Search(std::string_view end, RuleIndex first, RuleIndex then) : first_(first), then_(then) {
    for (size_t at = 0; at < end.size();) end_.push_back(NextCharacter(end, &at));
    // borders_[i]: of the first i characters, how many are at their beginning and at their end.
    borders_ = {0, 0};
    for (size_t i = 1; i < end_.size(); ++i) borders_.push_back(Next(borders_[i], end_[i]));
  }

  void AppendRules(Grammar& grammar) const {
    for (size_t state = 0; state < end_.size(); ++state) grammar.rules.push_back(RuleOf(state));
  }

 private:
  // REQUIRES: the borders up to that of `state`.
  size_t Next(size_t state, uint32_t character) const {
    while (state > 0 && end_[state] != character) state = borders_[state];
    return end_[state] == character ? state + 1 : 0;
  }
  Expression Go(size_t state) const {
    return Rule(state == end_.size() ? then_ : first_ + static_cast<RuleIndex>(state));
  }
  Expression RuleOf(size_t state) const {
    CharacterRanges of_end;
    for (const uint32_t character : end_) of_end.push_back({character, character});
    of_end = Normalized(std::move(of_end));
    std::vector<Expression> ways;
    ways.push_back(Then(Class(Complement(of_end)), Go(0)));
    ways.push_back(Then(ControlToken(), Go(state)));
    for (const CharacterRange& range : of_end) {
      for (uint32_t character = range.first; character <= range.last; ++character) {
        std::string text;
        AppendCharacter(character, &text);
        ways.push_back(Then(Text(std::move(text)), Go(Next(state, character))));
      }
    }
    return Choice(std::move(ways));
  }

  const RuleIndex first_, then_;
  std::vector<uint32_t> end_;
  std::vector<size_t> borders_;
};

void MoveRules(RuleIndex by, Expression& expression) {
  if (expression.kind == Expression::Kind::kRule) expression.rule += by;
  for (Expression& part : expression.parts) MoveRules(by, part);
}

}  // namespace

absl::StatusOr<Grammar> WithReasoning(const Reasoning& reasoning, Grammar form) {
  TANDEM_RETURN_IF_ERROR(Check("start", reasoning.start));
  TANDEM_RETURN_IF_ERROR(Check("end", reasoning.end));
  TANDEM_RETURN_IF_ERROR(Check("answer_start", reasoning.answer_start));
  if (reasoning.end.empty()) return absl::InvalidArgumentError("reasoning.end is empty");

  constexpr RuleIndex kAnswer = 1, kThoughts = 2;
  Grammar grammar;
  grammar.rules.resize(2);
  Search(reasoning.end, kThoughts, kAnswer).AppendRules(grammar);
  const auto form_rule = static_cast<RuleIndex>(grammar.rules.size());
  grammar.names.resize(form_rule);
  grammar.names.insert(grammar.names.end(), form.names.begin(), form.names.end());
  for (Expression& rule : form.rules) {
    MoveRules(form_rule, rule);
    grammar.rules.push_back(std::move(rule));
  }
  grammar.rules[kAnswer] = Sequence({Marker(reasoning.answer_start), LineEnds(), Rule(form_rule)});
  grammar.rules[0] = Rule(kThoughts);
  if (!reasoning.start.empty()) {
    grammar.rules[0] =
        Choice({Sequence({LineEnds(), Marker(reasoning.start), Rule(kThoughts)}), Rule(form_rule)});
  }
  return grammar;
}

}  // namespace tandem::coordinator::grammar
