// Strings from a file made safe: for a one-line message, for a terminal, for other programs.
#ifndef TANDEM_COMMON_GGUF_QUOTE_H_
#define TANDEM_COMMON_GGUF_QUOTE_H_

#include <string>
#include <string_view>

namespace tandem::gguf {

// `text` in double quotes, printable ASCII only (other bytes as \xNN), cut after about 80
// characters.
std::string Quoted(std::string_view text);

// `text` as valid UTF-8; bytes that are not a character become U+FFFD.
std::string CleanText(std::string_view text);

// CleanText on one line: control characters (C0, DEL, C1) become U+FFFD too.
std::string CleanName(std::string_view text);

}  // namespace tandem::gguf

#endif  // TANDEM_COMMON_GGUF_QUOTE_H_
