// Names from a file made safe for a one-line message.
#ifndef TANDEM_COMMON_GGUF_QUOTE_H_
#define TANDEM_COMMON_GGUF_QUOTE_H_

#include <string>
#include <string_view>

namespace tandem::gguf {

// `text` in double quotes, printable ASCII only (other bytes as \xNN), cut after about 80
// characters.
std::string Quoted(std::string_view text);

}  // namespace tandem::gguf

#endif  // TANDEM_COMMON_GGUF_QUOTE_H_
