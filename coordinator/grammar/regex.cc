#include "coordinator/grammar/regex.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "coordinator/grammar/characters.h"
#include "coordinator/grammar/regex_reader.h"
#include "coordinator/grammar/utf8_ranges.h"

namespace tandem::coordinator::grammar {
namespace {

// What was read, and about how many states of a network it takes.
struct Piece {
  Expression expression;
  uint64_t states = 1;
};

// By recursive descent.
class RegexParser {
 public:
  RegexParser(std::string_view pattern, RegexUse use) : reader_(pattern, use), use_(use) {}

  absl::StatusOr<Expression> Parse() {
    // Alternatives by whether they are to begin and to end where the text does.
    Expression alternatives[2][2];
    for (auto& row : alternatives) row[0] = row[1] = Choice({});
    uint64_t states = 0;
    do {
      const bool begins = reader_.Skip("^") || use_ == RegexUse::kWhole;
      TANDEM_ASSIGN_OR_RETURN(Piece piece, Alternative(0));
      const bool ends = reader_.Skip("$") || use_ == RegexUse::kWhole;
      TANDEM_RETURN_IF_ERROR(Add(piece.states, &states));
      alternatives[begins][ends].parts.push_back(std::move(piece.expression));
    } while (reader_.Skip("|"));
    if (reader_.IsNext(")")) return BadRegex(reader_.at(), "a closing parenthesis too many");
    if (!reader_.AtEnd()) return BadRegex(reader_.at() - 1, "\"$\" is supported at the end only");
    Expression all = Choice({});
    for (const bool begins : {false, true}) {
      for (const bool ends : {false, true}) {
        if (alternatives[begins][ends].parts.empty()) continue;
        all.parts.push_back(Within(std::move(alternatives[begins][ends]), begins, ends));
      }
    }
    return all.parts.size() == 1 ? std::move(all.parts[0]) : std::move(all);
  }

 private:
  // With any text where it need not begin or end the text.
  static Expression Within(Expression expression, bool begins, bool ends) {
    const Expression any = Repeat(Class({{0, kLastCharacter}}), 0);
    if (!begins) expression = Then(any, std::move(expression));
    if (!ends) expression = Then(std::move(expression), any);
    return expression;
  }

  absl::Status Add(uint64_t more, uint64_t* states) const {
    *states += more;
    if (*states <= kMaxRegexStates) return absl::OkStatus();
    return BadRegex(reader_.at(), absl::StrCat("with repetitions written out it has more than ",
                                               kMaxRegexStates, " states"));
  }

  absl::StatusOr<Piece> Choices(int depth) {
    Piece all{Choice({}), 0};
    do {
      TANDEM_ASSIGN_OR_RETURN(Piece piece, Alternative(depth));
      TANDEM_RETURN_IF_ERROR(Add(piece.states, &all.states));
      all.expression.parts.push_back(std::move(piece.expression));
    } while (reader_.Skip("|"));
    if (all.expression.parts.size() == 1) {
      // Through a temporary: the part is within what is assigned to.
      Expression only = std::move(all.expression.parts[0]);
      all.expression = std::move(only);
    }
    return all;
  }

  // Up to a bar, the closing parenthesis or a "$" outside of groups.
  absl::StatusOr<Piece> Alternative(int depth) {
    Piece all{Sequence({})};
    std::vector<Expression>& parts = all.expression.parts;
    bool may_grow = false;  // whether the last part is a text to which characters may be added
    while (!reader_.AtEnd() && !reader_.IsNext("|") && !reader_.IsNext(")")) {
      if (depth == 0 && reader_.IsNext("$")) break;
      TANDEM_ASSIGN_OR_RETURN(Piece piece, Atom(depth));
      TANDEM_ASSIGN_OR_RETURN(const bool repeated, Quantify(&piece));
      TANDEM_RETURN_IF_ERROR(Add(piece.states + 1, &all.states));
      const bool is_text = !repeated && piece.expression.kind == Expression::Kind::kText;
      if (is_text && may_grow) {
        parts.back().text += piece.expression.text;
      } else {
        parts.push_back(std::move(piece.expression));
      }
      may_grow = is_text;
    }
    if (parts.size() == 1) {
      Expression only = std::move(parts[0]);
      all.expression = std::move(only);
    }
    return all;
  }

  absl::StatusOr<Piece> Atom(int depth) {
    const size_t start = reader_.at();
    if (reader_.Skip("(")) return Group(start, depth + 1);
    if (reader_.Skip("[")) {
      TANDEM_ASSIGN_OR_RETURN(CharacterRanges ranges, reader_.ReadClass());
      return OfRanges(std::move(ranges));
    }
    if (reader_.Skip(".")) return OfRanges(reader_.AnyInLine());
    if (reader_.Skip("\\")) {
      TANDEM_ASSIGN_OR_RETURN(RegexReader::Escape escape, reader_.ReadEscape(/*in_class=*/false));
      return escape.character.has_value() ? OfCharacter(*escape.character)
                                          : OfRanges(std::move(escape.ranges));
    }
    if (reader_.IsNext("^")) return BadRegex(start, "\"^\" is supported at the beginning only");
    if (reader_.IsNext("$")) return BadRegex(start, "\"$\" is supported at the end only");
    if (reader_.IsNext("*") || reader_.IsNext("+") || reader_.IsNext("?")) {
      return BadRegex(start, "nothing to repeat");
    }
    if (reader_.IsNext("{")) return BadRegex(start, "nothing to repeat, or need \\{ for a brace");
    return OfCharacter(reader_.Character());
  }

  absl::StatusOr<Piece> Group(size_t start, int depth) {
    if (depth > kMaxRegexDepth) {
      return BadRegex(start, absl::StrCat("groups nest deeper than ", kMaxRegexDepth));
    }
    if (reader_.Skip("?")) TANDEM_RETURN_IF_ERROR(SkipKindOfGroup(start));
    TANDEM_ASSIGN_OR_RETURN(Piece inside, Choices(depth));
    if (!reader_.Skip(")")) return BadRegex(start, "a parenthesis that is not closed");
    return inside;
  }

  // After "(?".
  absl::Status SkipKindOfGroup(size_t start) {
    if (reader_.Skip(":")) return absl::OkStatus();
    for (const std::string_view look : {"=", "!", "<=", "<!"}) {
      if (reader_.IsNext(look)) return BadRegex(start, "lookaround is not supported");
    }
    if (reader_.IsNext("P=") || reader_.IsNext("P>")) {
      return BadRegex(start, "backreferences are not supported");
    }
    if (!reader_.Skip("<") && !reader_.Skip("P<")) {
      return BadRegex(start, "flags and groups but (?:...) and (?<name>...) are not supported");
    }
    const auto is_of_name = [&](uint32_t c) {
      return c == '_' || (c < 0x80 && absl::ascii_isalnum(static_cast<unsigned char>(c)));
    };
    size_t length = 0;
    for (; !reader_.AtEnd() && !reader_.IsNext(">"); ++length) {
      const size_t at = reader_.at();
      if (!is_of_name(reader_.Character())) return BadRegex(at, "not of a group's name");
    }
    if (length == 0 || !reader_.Skip(">")) return BadRegex(start, "a group without its name");
    return absl::OkStatus();
  }

  // Whether a quantifier was there.
  absl::StatusOr<bool> Quantify(Piece* piece) {
    RegexReader::Count count{0, kUnbounded};
    if (reader_.Skip("+")) {
      count.least = 1;
    } else if (reader_.Skip("?")) {
      count.most = 1;
    } else if (reader_.Skip("{")) {
      TANDEM_ASSIGN_OR_RETURN(count, reader_.ReadCount());
    } else if (!reader_.Skip("*")) {
      return false;
    }
    const size_t after = reader_.at();
    const bool lazy = reader_.Skip("?");
    if (!lazy && reader_.IsNext("+")) {
      return BadRegex(after, "possessive quantifiers are not supported");
    }
    for (const std::string_view again : {"*", "+", "?", "{"}) {
      if (reader_.IsNext(again)) return BadRegex(reader_.at(), "a quantifier of a quantifier");
    }
    const uint64_t times = count.most == kUnbounded ? count.least + 1 : count.most;
    uint64_t states = 1;
    TANDEM_RETURN_IF_ERROR(Add((piece->states + 1) * times, &states));
    piece->expression = Repeat(std::move(piece->expression), count.least, count.most);
    piece->states = states;
    return true;
  }

  static Piece OfCharacter(uint32_t character) {
    std::string text;
    AppendCharacter(character, &text);
    const uint64_t states = text.size();
    return {Text(std::move(text)), states};
  }
  static Piece OfRanges(CharacterRanges ranges) {
    uint64_t states = 1;
    for (const CharacterRange& range : ranges) {
      // One byte is an edge and no state.
      if (range.last < 0x80) continue;
      for (const ByteRanges& bytes : Utf8RangesOf(range)) states += bytes.size() - 1;
    }
    return {Class(std::move(ranges)), states};
  }

  RegexReader reader_;
  const RegexUse use_;
};

}  // namespace

absl::StatusOr<Expression> ExpressionOfRegex(std::string_view pattern, RegexUse use) {
  if (pattern.size() > kMaxRegexBytes) {
    return BadRegex(kMaxRegexBytes,
                    absl::StrCat("it has ", pattern.size(), " bytes, at most ", kMaxRegexBytes));
  }
  const size_t valid = ValidUtf8Prefix(pattern);
  if (valid != pattern.size()) return BadRegex(valid, "not UTF-8");
  return RegexParser(pattern, use).Parse();
}

}  // namespace tandem::coordinator::grammar
