#include "coordinator/grammar/gbnf_reader.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "coordinator/grammar/gbnf.h"

namespace tandem::coordinator::grammar {
namespace {

bool IsOfName(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
}

}  // namespace

absl::Status GbnfReader::Bad(size_t at, std::string_view what) const {
  const std::string_view before = text_.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t line_end = before.rfind('\n');
  const size_t column = line_end == std::string_view::npos ? at + 1 : at - line_end;
  return absl::InvalidArgumentError(
      absl::StrCat("grammar, line ", line, ", byte ", column, ": ", Sv(what)));
}

bool GbnfReader::Skip(std::string_view text) {
  if (!IsNext(text)) return false;
  at_ += text.size();
  return true;
}

void GbnfReader::SkipSpace(bool lines) {
  while (!AtEnd()) {
    const char c = text_[at_];
    if (c == '#') {
      at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
    } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
      ++at_;
    } else {
      return;
    }
  }
}

void GbnfReader::SkipLinesToBar() {
  const size_t start = at_;
  SkipSpace(/*lines=*/true);
  if (!IsNext("|")) at_ = start;
}

absl::StatusOr<std::string_view> GbnfReader::ReadName() {
  const size_t start = at_;
  while (!AtEnd() && IsOfName(text_[at_])) ++at_;
  if (at_ - start > kMaxGbnfNameBytes) {
    return Bad(start, absl::StrCat("a name of more than ", kMaxGbnfNameBytes, " bytes"));
  }
  return text_.substr(start, at_ - start);
}

absl::StatusOr<std::string> GbnfReader::ReadText() {
  const size_t start = at_ - 1;
  std::string out;
  while (!Skip("\"")) {
    if (AtEnd()) return Bad(start, "a text without its closing quote");
    TANDEM_ASSIGN_OR_RETURN(const uint32_t character, ReadCharacter());
    AppendCharacter(character, &out);
  }
  return out;
}

absl::StatusOr<CharacterRanges> GbnfReader::ReadClass() {
  const size_t start = at_ - 1;
  const bool negated = Skip("^");
  if (IsNext("]")) return Bad(start, "an empty class");
  CharacterRanges ranges;
  while (!Skip("]")) {
    if (AtEnd()) return Bad(start, "a class without its closing bracket");
    const size_t at = at_;
    TANDEM_ASSIGN_OR_RETURN(const uint32_t first, ReadCharacter());
    uint32_t last = first;
    // A minus right before the closing bracket is one.
    if (IsNext("-") && !IsNext("-]")) {
      Skip("-");
      if (AtEnd()) return Bad(start, "a class without its closing bracket");
      TANDEM_ASSIGN_OR_RETURN(last, ReadCharacter());
    }
    if (last < first) return Bad(at, "a range that ends before it begins");
    ranges.push_back({first, last});
  }
  ranges = Normalized(std::move(ranges));
  return negated ? Complement(ranges) : ranges;
}

absl::StatusOr<uint32_t> GbnfReader::ReadCharacter() {
  if (Skip("\\")) return ReadEscape();
  return NextCharacter(text_, &at_);
}

absl::StatusOr<uint32_t> GbnfReader::ReadEscape() {
  const size_t start = at_ - 1;
  if (AtEnd()) return Bad(start, "a backslash without what it escapes");
  const uint32_t c = NextCharacter(text_, &at_);
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'x':
    case 'u':
    case 'U':
      break;
    default:
      if (c < 0x80 && absl::ascii_ispunct(static_cast<unsigned char>(c))) return c;
      return Bad(start, "there is no such escape");
  }
  const size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
  uint64_t code = 0;
  for (size_t i = 0; i < count; ++i, ++at_) {
    const char digit = AtEnd() ? '\0' : text_[at_];
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(digit))) {
      return Bad(at_, absl::StrCat("need ", count, " hexadecimal digits"));
    }
    const char lower = absl::ascii_tolower(static_cast<unsigned char>(digit));
    code = code * 16 + static_cast<uint64_t>(lower <= '9' ? lower - '0' : lower - 'a' + 10);
  }
  const bool is_one = code <= kLastCharacter && !IsSurrogate(static_cast<uint32_t>(code));
  if (!is_one) return Bad(start, "there is no such character");
  return static_cast<uint32_t>(code);
}

absl::StatusOr<uint32_t> GbnfReader::ReadNumber() {
  SkipSpace(/*lines=*/false);
  const size_t start = at_;
  uint32_t number = 0;
  for (; !AtEnd() && absl::ascii_isdigit(static_cast<unsigned char>(text_[at_])); ++at_) {
    number = number * 10 + static_cast<uint32_t>(text_[at_] - '0');
    if (number > kMaxGbnfCount) {
      return Bad(start, absl::StrCat("a count of more than ", kMaxGbnfCount));
    }
  }
  if (at_ == start) return Bad(start, "need {n}, {n,} or {n,m}");
  SkipSpace(/*lines=*/false);
  return number;
}

absl::StatusOr<GbnfReader::Count> GbnfReader::ReadCount() {
  const size_t start = at_ - 1;
  TANDEM_ASSIGN_OR_RETURN(const uint32_t least, ReadNumber());
  uint32_t most = least;
  if (Skip(",")) {
    most = kUnbounded;
    SkipSpace(/*lines=*/false);
    if (!IsNext("}")) {
      TANDEM_ASSIGN_OR_RETURN(most, ReadNumber());
    }
  }
  if (!Skip("}")) return Bad(start, "need {n}, {n,} or {n,m}");
  if (least > most) return Bad(start, "a count that ends before it begins");
  return Count{least, most};
}

}  // namespace tandem::coordinator::grammar
