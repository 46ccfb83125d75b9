#include "common/gguf/quote.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/strings.h"

namespace tandem::gguf {

std::string Quoted(std::string_view text) {
  constexpr size_t kLimit = 80;
  const std::string_view shown = text.substr(0, kLimit);
  return absl::StrCat("\"", absl::CHexEscape(Sv(shown)), shown.size() < text.size() ? "..." : "",
                      "\"");
}

}  // namespace tandem::gguf
