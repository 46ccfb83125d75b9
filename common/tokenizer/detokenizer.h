// Token ids to text: always valid UTF-8, even while a character is incomplete.
#ifndef TANDEM_COMMON_TOKENIZER_DETOKENIZER_H_
#define TANDEM_COMMON_TOKENIZER_DETOKENIZER_H_

#include <string>
#include <vector>

#include "common/base/utf8.h"
#include "common/tokenizer/tokenizer.h"

namespace tandem::tokenizer {

struct DecodeOptions {
  // Control tokens produce no text. Off: they produce their names.
  bool skip_special = true;
  // The ids are a whole text, so that the space prefix added by Encode is removed. Off: they
  // continue one (an answer after its prompt), and a leading space counts.
  bool at_start = true;
};

// One sequence's state; not thread-safe. The tokenizer must outlive it.
class IncrementalDetokenizer {
 public:
  IncrementalDetokenizer(const Tokenizer& tokenizer, const DecodeOptions& options)
      : tokenizer_(&tokenizer), options_(options), strip_space_(options.at_start) {}

  // The text that is final so far. Bytes that can no longer become a character give U+FFFD; an
  // unfinished character waits for the next token. INVALID_ARGUMENT when `id` is outside the
  // vocabulary; the state is then unchanged.
  absl::StatusOr<std::string> Append(TokenId id);

  // No more tokens come: an unfinished character gives U+FFFD.
  std::string Flush();

 private:
  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  bool strip_space_;  // at the start of the text, whose space prefix is removed
  Utf8Stream utf8_;
};

// All of it at once. INVALID_ARGUMENT when an id is outside the vocabulary.
absl::StatusOr<std::string> Decode(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                                   const DecodeOptions& options);

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_DETOKENIZER_H_
