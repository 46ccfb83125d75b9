#include "common/gguf/keys.h"

namespace tandem::gguf {

std::string KeyFor(std::string_view key, std::string_view architecture) {
  constexpr std::string_view kPlace = "{arch}";
  std::string full;
  if (key.substr(0, kPlace.size()) == kPlace) {
    full = architecture;
    key.remove_prefix(kPlace.size());
  }
  full += key;
  return full;
}

}  // namespace tandem::gguf
