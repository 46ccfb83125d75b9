#include "coordinator/grammar/gbnf.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"
#include "coordinator/grammar/gbnf_reader.h"

namespace tandem::coordinator::grammar {
namespace {

constexpr char kRoot[] = "root";

// By recursive descent.
class GbnfParser {
 public:
  explicit GbnfParser(std::string_view text) : reader_(text) { IndexOf(kRoot, 0); }

  absl::StatusOr<Grammar> Parse() {
    reader_.SkipSpace(/*lines=*/true);
    while (!reader_.AtEnd()) {
      TANDEM_RETURN_IF_ERROR(ReadRule());
      reader_.SkipSpace(/*lines=*/true);
    }
    if (!said_[0]) return absl::InvalidArgumentError("the grammar has no rule root");
    for (size_t rule = 0; rule < said_.size(); ++rule) {
      if (said_[rule]) continue;
      return reader_.Bad(named_at_[rule], absl::StrCat("there is no rule ", grammar_.names[rule]));
    }
    return std::move(grammar_);
  }

 private:
  // Of the rule of that name, named here if it is new.
  RuleIndex IndexOf(std::string_view name, size_t at) {
    const auto next = static_cast<RuleIndex>(grammar_.rules.size());
    const auto [found, is_new] = rules_.emplace(std::string(name), next);
    if (is_new) {
      grammar_.rules.emplace_back();
      grammar_.names.emplace_back(name);
      said_.push_back(false);
      named_at_.push_back(at);
    }
    return found->second;
  }

  absl::Status ReadRule() {
    const size_t start = reader_.at();
    TANDEM_ASSIGN_OR_RETURN(const std::string_view name, reader_.ReadName());
    if (name.empty()) return reader_.Bad(start, "need the name of a rule");
    reader_.SkipSpace(/*lines=*/false);
    if (!reader_.Skip("::=")) {
      return reader_.Bad(reader_.at(), absl::StrCat("need ::= after the name ", Sv(name)));
    }
    const RuleIndex rule = IndexOf(name, start);
    if (said_[rule]) return reader_.Bad(start, absl::StrCat("rule ", Sv(name), " is said twice"));
    said_[rule] = true;
    reader_.SkipSpace(/*lines=*/true);
    TANDEM_ASSIGN_OR_RETURN(grammar_.rules[rule], Choices(/*depth=*/0));
    const bool ends = reader_.AtEnd() || reader_.IsNext("\n") || reader_.IsNext("\r");
    return ends ? absl::OkStatus() : Unexpected();
  }

  absl::Status Unexpected() const {
    if (reader_.IsNext(")")) {
      return reader_.Bad(reader_.at(), "a closing parenthesis too many");
    }
    if (reader_.IsNext("::=")) {
      return reader_.Bad(reader_.at(),
                         "a rule begins, and the one before is not finished: a parenthesis is not "
                         "closed, or nothing follows ::= or |");
    }
    if (reader_.IsNext("<") || reader_.IsNext("!")) {
      return reader_.Bad(reader_.at(), "tokens are not supported");
    }
    if (reader_.IsNext("'")) return reader_.Bad(reader_.at(), "texts are in double quotes");
    return reader_.Bad(reader_.at(), "need a text, a class, the name of a rule, ( or .");
  }

  absl::StatusOr<Expression> Choices(int depth) {
    Expression all = Choice({});
    do {
      if (!all.parts.empty()) reader_.SkipSpace(/*lines=*/true);
      TANDEM_ASSIGN_OR_RETURN(Expression one, SequenceOf(depth));
      all.parts.push_back(std::move(one));
      if (depth == 0) reader_.SkipLinesToBar();
    } while (reader_.Skip("|"));
    return all.parts.size() == 1 ? Only(std::move(all)) : std::move(all);
  }

  // Up to what is none of its parts.
  absl::StatusOr<Expression> SequenceOf(int depth) {
    Expression all = Sequence({});
    while (true) {
      TANDEM_ASSIGN_OR_RETURN(std::optional<Expression> part, Part(depth));
      if (!part.has_value()) break;
      reader_.SkipSpace(/*lines=*/depth > 0);
      TANDEM_RETURN_IF_ERROR(Quantify(*part));
      reader_.SkipSpace(/*lines=*/depth > 0);
      all.parts.push_back(*std::move(part));
    }
    return all.parts.size() == 1 ? Only(std::move(all)) : std::move(all);
  }

  static Expression Only(Expression of_one) { return std::move(of_one.parts[0]); }

  absl::StatusOr<std::optional<Expression>> Part(int depth) {
    const size_t start = reader_.at();
    if (reader_.Skip("\"")) {
      TANDEM_ASSIGN_OR_RETURN(std::string text, reader_.ReadText());
      return Text(std::move(text));
    }
    if (reader_.Skip("[")) {
      TANDEM_ASSIGN_OR_RETURN(CharacterRanges ranges, reader_.ReadClass());
      return Class(std::move(ranges));
    }
    if (reader_.Skip(".")) return Class({{0, kLastCharacter}});
    if (reader_.Skip("(")) {
      TANDEM_ASSIGN_OR_RETURN(Expression group, Group(start, depth + 1));
      return group;
    }
    TANDEM_ASSIGN_OR_RETURN(const std::string_view name, reader_.ReadName());
    if (!name.empty()) return Rule(IndexOf(name, start));
    for (const std::string_view quantifier : {"*", "+", "?", "{"}) {
      if (reader_.IsNext(quantifier)) {
        return reader_.Bad(start, "nothing to repeat; what is repeated twice is in parentheses");
      }
    }
    return std::optional<Expression>();
  }

  absl::StatusOr<Expression> Group(size_t start, int depth) {
    if (depth > kMaxGbnfDepth) {
      return reader_.Bad(start, absl::StrCat("groups nest deeper than ", kMaxGbnfDepth));
    }
    reader_.SkipSpace(/*lines=*/true);
    TANDEM_ASSIGN_OR_RETURN(Expression inside, Choices(depth));
    if (reader_.Skip(")")) return inside;
    return reader_.AtEnd() ? reader_.Bad(start, "a parenthesis that is not closed") : Unexpected();
  }

  // Repeats the part as a quantifier behind it says.
  absl::Status Quantify(Expression& part) {
    GbnfReader::Count count{0, kUnbounded};
    if (reader_.Skip("+")) {
      count.least = 1;
    } else if (reader_.Skip("?")) {
      count.most = 1;
    } else if (reader_.Skip("{")) {
      TANDEM_ASSIGN_OR_RETURN(count, reader_.ReadCount());
    } else if (!reader_.Skip("*")) {
      return absl::OkStatus();
    }
    part = Repeat(std::move(part), count.least, count.most);
    return absl::OkStatus();
  }

  GbnfReader reader_;
  Grammar grammar_;
  absl::flat_hash_map<std::string, RuleIndex> rules_;
  std::vector<bool> said_;        // by rule
  std::vector<size_t> named_at_;  // by rule, first
};

}  // namespace

absl::StatusOr<Grammar> GrammarOfGbnf(std::string_view text) {
  if (text.size() > kMaxGbnfBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the grammar has ", text.size(), " bytes, at most ", kMaxGbnfBytes));
  }
  if (const size_t valid = ValidUtf8Prefix(text); valid != text.size()) {
    return GbnfReader(text).Bad(valid, "not UTF-8");
  }
  return GbnfParser(text).Parse();
}

}  // namespace tandem::coordinator::grammar
