// GbnfReader: the names, texts, classes and counts of a grammar in GBNF (gbnf.h), and what stands
// between them. Internal to this folder.
#ifndef TANDEM_COORDINATOR_GRAMMAR_GBNF_READER_H_
#define TANDEM_COORDINATOR_GRAMMAR_GBNF_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/grammar/characters.h"

namespace tandem::coordinator::grammar {

// Where the grammar is read. REQUIRES: valid UTF-8.
class GbnfReader {
 public:
  explicit GbnfReader(std::string_view text) : text_(text) {}

  size_t at() const { return at_; }
  bool AtEnd() const { return at_ == text_.size(); }
  bool IsNext(std::string_view text) const { return text_.substr(at_).starts_with(text); }
  // Whether it was there.
  bool Skip(std::string_view text);
  // Blanks and comments, and line ends as well if `lines`.
  void SkipSpace(bool lines);
  // Line ends up to a `|`, if that is the next that is no space.
  void SkipLinesToBar();

  // Empty if there is none.
  absl::StatusOr<std::string_view> ReadName();
  // After the opening quote.
  absl::StatusOr<std::string> ReadText();
  // After the opening bracket.
  absl::StatusOr<CharacterRanges> ReadClass();
  // After the opening brace: "n}", "n,}" or "n,m}".
  struct Count {
    uint32_t least;
    uint32_t most;
  };
  absl::StatusOr<Count> ReadCount();

  // `what` is wrong at a byte of the grammar.
  absl::Status Bad(size_t at, std::string_view what) const;

 private:
  // One, which may be escaped. REQUIRES: not at the end.
  absl::StatusOr<uint32_t> ReadCharacter();
  absl::StatusOr<uint32_t> ReadEscape();
  absl::StatusOr<uint32_t> ReadNumber();

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_COORDINATOR_GRAMMAR_GBNF_READER_H_
