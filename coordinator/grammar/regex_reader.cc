#include "coordinator/grammar/regex_reader.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"

namespace tandem::coordinator::grammar {
namespace {

const CharacterRanges& Digits() {
  static const auto* const digits = new CharacterRanges{{'0', '9'}};
  return *digits;
}
const CharacterRanges& WordCharacters() {
  static const auto* const word =
      new CharacterRanges{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return *word;
}
bool IsLetterOrDigit(uint32_t c) {
  return c < 0x80 && absl::ascii_isalnum(static_cast<unsigned char>(c));
}

// Why an escape of a letter or a digit is not read.
std::string_view RefusalOf(uint32_t letter) {
  if (letter >= '1' && letter <= '9') return "backreferences are not supported";
  switch (letter) {
    case 'k':
    case 'g':
      return "backreferences are not supported";
    case 'b':
    case 'B':
      return "\\b and \\B are not supported";
    case 'p':
    case 'P':
      return "\\p and \\P are not supported";
    case 'A':
    case 'G':
    case 'Z':
    case 'z':
      return "anchors but ^ and $ are not supported";
    default:
      return "there is no such escape";
  }
}

}  // namespace

absl::Status BadRegex(size_t at, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("regular expression, byte ", at, ": ", Sv(what)));
}

bool RegexReader::Skip(std::string_view text) {
  if (!IsNext(text)) return false;
  at_ += text.size();
  return true;
}

CharacterRanges RegexReader::AnyInLine() const {
  if (use_ == RegexUse::kWhole) return Complement({{'\n', '\n'}});
  return Complement({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
}

CharacterRanges RegexReader::Spaces() const {
  if (use_ == RegexUse::kWhole) return {{'\t', '\r'}, {' ', ' '}};
  return {{'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
          {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
}

absl::StatusOr<RegexReader::Escape> RegexReader::ReadEscape(bool in_class) {
  const size_t start = at_ - 1;
  if (AtEnd()) return BadRegex(start, "a backslash without what it escapes");
  const auto one = [](uint32_t c) { return Escape{.character = c, .ranges = {}}; };
  const auto set = [](CharacterRanges r) { return Escape{{}, std::move(r)}; };
  const uint32_t c = Character();
  switch (c) {
    case 'd':
      return set(Digits());
    case 'D':
      return set(Complement(Digits()));
    case 'w':
      return set(WordCharacters());
    case 'W':
      return set(Complement(WordCharacters()));
    case 's':
      return set(Spaces());
    case 'S':
      return set(Complement(Spaces()));
    case 't':
      return one('\t');
    case 'n':
      return one('\n');
    case 'r':
      return one('\r');
    case 'f':
      return one('\f');
    case 'v':
      return one('\v');
    case 'b':
      if (in_class) return one('\b');
      break;
    case '0':
      if (!AtEnd() && absl::ascii_isdigit(static_cast<unsigned char>(pattern_[at_]))) {
        return BadRegex(start, "octal escapes are not supported");
      }
      return one(0);
    case 'x': {
      TANDEM_ASSIGN_OR_RETURN(const uint32_t code, ReadHex(2));
      return one(code);
    }
    case 'u': {
      TANDEM_ASSIGN_OR_RETURN(const uint32_t code, ReadUnicode());
      return one(code);
    }
    default:
      if (c >= ' ' && c < 0x7f && !IsLetterOrDigit(c)) return one(c);
  }
  return BadRegex(start, RefusalOf(c));
}

absl::StatusOr<uint32_t> RegexReader::ReadHex(size_t count) {
  uint32_t code = 0;
  const size_t end = at_ + count;
  for (; at_ < end; ++at_) {
    const char c = AtEnd() ? '\0' : absl::ascii_tolower(static_cast<unsigned char>(pattern_[at_]));
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) {
      return BadRegex(at_, absl::StrCat("need ", count, " hexadecimal digits"));
    }
    code = code * 16 + static_cast<uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return code;
}

absl::StatusOr<uint32_t> RegexReader::ReadUnicode() {
  const size_t start = at_ - 2;
  uint32_t code = 0;
  if (Skip("{")) {
    const size_t end = pattern_.substr(0, at_ + 7).find('}', at_);
    if (end == std::string_view::npos || end == at_) {
      return BadRegex(start, "need one to six hexadecimal digits in braces");
    }
    TANDEM_ASSIGN_OR_RETURN(code, ReadHex(end - at_));
    Skip("}");
  } else {
    TANDEM_ASSIGN_OR_RETURN(code, ReadHex(4));
    const bool is_high = code >= 0xd800 && code <= 0xdbff;
    if (is_high && Skip("\\u")) {
      TANDEM_ASSIGN_OR_RETURN(const uint32_t low, ReadHex(4));
      if (low < 0xdc00 || low > 0xdfff) return BadRegex(start, "half a pair of surrogates");
      code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
    }
  }
  if (IsSurrogate(code)) return BadRegex(start, "half a pair of surrogates");
  if (code > kLastCharacter) return BadRegex(start, "there is no such character");
  return code;
}

absl::StatusOr<RegexReader::Escape> RegexReader::ReadMember() {
  if (Skip("\\")) return ReadEscape(/*in_class=*/true);
  for (const std::string_view posix : {"[:", "[.", "[="}) {
    if (IsNext(posix)) return BadRegex(at_, "classes by name are not supported");
  }
  return Escape{.character = Character(), .ranges = {}};
}

absl::StatusOr<CharacterRanges> RegexReader::ReadClass() {
  const size_t start = at_ - 1;
  const bool negated = Skip("^");
  if (IsNext("]")) return BadRegex(start, "an empty class");
  CharacterRanges ranges;
  while (!Skip("]")) {
    if (AtEnd()) return BadRegex(start, "a class without its closing bracket");
    const size_t at = at_;
    TANDEM_ASSIGN_OR_RETURN(Escape first, ReadMember());
    // A minus right before the closing bracket is one.
    if (!IsNext("-") || IsNext("-]")) {
      if (first.character.has_value()) first.ranges = {{*first.character, *first.character}};
      ranges.insert(ranges.end(), first.ranges.begin(), first.ranges.end());
      continue;
    }
    Skip("-");
    if (AtEnd()) return BadRegex(start, "a class without its closing bracket");
    TANDEM_ASSIGN_OR_RETURN(const Escape last, ReadMember());
    if (!first.character.has_value() || !last.character.has_value()) {
      return BadRegex(at, "a range needs a character at either end");
    }
    if (*first.character > *last.character)
      return BadRegex(at, "a range that ends before it begins");
    ranges.push_back({*first.character, *last.character});
  }
  ranges = Normalized(std::move(ranges));
  return negated ? Complement(ranges) : ranges;
}

absl::StatusOr<uint32_t> RegexReader::ReadNumber() {
  const size_t start = at_;
  uint32_t number = 0;
  for (; !AtEnd() && absl::ascii_isdigit(static_cast<unsigned char>(pattern_[at_])); ++at_) {
    number = number * 10 + static_cast<uint32_t>(pattern_[at_] - '0');
    if (number > kMaxRegexCount) {
      return BadRegex(start, absl::StrCat("a count of more than ", kMaxRegexCount));
    }
  }
  if (at_ == start) return BadRegex(start, "need {n}, {n,} or {n,m}, or \\{ for a brace");
  return number;
}

absl::StatusOr<RegexReader::Count> RegexReader::ReadCount() {
  const size_t start = at_ - 1;
  TANDEM_ASSIGN_OR_RETURN(const uint32_t least, ReadNumber());
  uint32_t most = least;
  if (Skip(",")) {
    most = kUnbounded;
    if (!IsNext("}")) {
      TANDEM_ASSIGN_OR_RETURN(most, ReadNumber());
    }
  }
  if (!Skip("}")) return BadRegex(start, "need {n}, {n,} or {n,m}, or \\{ for a brace");
  if (least > most) return BadRegex(start, "a count that ends before it begins");
  return Count{least, most};
}

}  // namespace tandem::coordinator::grammar
