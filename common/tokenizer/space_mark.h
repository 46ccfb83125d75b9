// How SentencePiece vocabularies, and those derived from them, write a space: U+2581.
#ifndef TANDEM_COMMON_TOKENIZER_SPACE_MARK_H_
#define TANDEM_COMMON_TOKENIZER_SPACE_MARK_H_

#include <string>
#include <string_view>

namespace tandem::tokenizer {

inline constexpr std::string_view kSpaceMark = "\u2581";

// `text` with a mark for every space, and one more in front with `prefix`.
std::string MarkSpaces(std::string_view text, bool prefix);
// `text` with a space for every mark.
std::string UnmarkSpaces(std::string_view text);

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_SPACE_MARK_H_
