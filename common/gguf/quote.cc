#include "common/gguf/quote.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/strings.h"
#include "common/base/utf8.h"

namespace tandem::gguf {

std::string Quoted(std::string_view text) {
  constexpr size_t kLimit = 80;
  const std::string_view shown = text.substr(0, kLimit);
  return absl::StrCat("\"", absl::CHexEscape(Sv(shown)), shown.size() < text.size() ? "..." : "",
                      "\"");
}

std::string CleanText(std::string_view text) { return RepairedUtf8(text); }

std::string CleanName(std::string_view text) {
  const std::string valid = RepairedUtf8(text);
  std::string clean;
  for (size_t at = 0; at < valid.size();) {
    const auto first = static_cast<uint8_t>(valid[at]);
    const size_t length = Utf8Length(first);
    // C1 is U+0080 to U+009F: 0xc2 and a second byte below 0xa0.
    const bool control = first < 0x20 || first == 0x7f ||
                         (first == 0xc2 && static_cast<uint8_t>(valid[at + 1]) < 0xa0);
    clean += control ? "\uFFFD" : valid.substr(at, length);
    at += length;
  }
  return clean;
}

}  // namespace tandem::gguf
