// RegexReader: the characters and classes of a regular expression (regex.h). Internal to this
// folder.
#ifndef TANDEM_COORDINATOR_GRAMMAR_REGEX_READER_H_
#define TANDEM_COORDINATOR_GRAMMAR_REGEX_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/grammar/characters.h"
#include "coordinator/grammar/regex.h"

namespace tandem::coordinator::grammar {

// `what` is wrong at a byte of the pattern.
absl::Status BadRegex(size_t at, std::string_view what);

// Where the pattern is read. REQUIRES: valid UTF-8.
class RegexReader {
 public:
  RegexReader(std::string_view pattern, RegexUse use) : pattern_(pattern), use_(use) {}

  size_t at() const { return at_; }
  bool AtEnd() const { return at_ == pattern_.size(); }
  bool IsNext(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  // Whether it was there.
  bool Skip(std::string_view text);
  // A character, which may be any. REQUIRES: not at the end.
  uint32_t Character() { return NextCharacter(pattern_, &at_); }

  // Of one character, or of several if it is a class like \d.
  struct Escape {
    std::optional<uint32_t> character;
    CharacterRanges ranges;
  };
  // After the backslash.
  absl::StatusOr<Escape> ReadEscape(bool in_class);
  // After the opening bracket.
  absl::StatusOr<CharacterRanges> ReadClass();
  // After the opening brace: "n}", "n,}" or "n,m}".
  struct Count {
    uint32_t least;
    uint32_t most;
  };
  absl::StatusOr<Count> ReadCount();

  CharacterRanges AnyInLine() const;

 private:
  // A character or a class like \d, of a class in brackets.
  absl::StatusOr<Escape> ReadMember();
  absl::StatusOr<uint32_t> ReadNumber();
  // Of `count` digits.
  absl::StatusOr<uint32_t> ReadHex(size_t count);
  // After "\u": with the second half of a pair of surrogates.
  absl::StatusOr<uint32_t> ReadUnicode();
  CharacterRanges Spaces() const;

  const std::string_view pattern_;
  const RegexUse use_;
  size_t at_ = 0;
};

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_REGEX_READER_H_
