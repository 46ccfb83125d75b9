#include "common/tokenizer/space_mark.h"

namespace tandem::tokenizer {

std::string MarkSpaces(std::string_view text, bool prefix) {
  std::string marked;
  marked.reserve(text.size() + text.size() / 2 + kSpaceMark.size());
  if (prefix) marked += kSpaceMark;
  for (char c : text) {
    if (c == ' ') {
      marked += kSpaceMark;
    } else {
      marked.push_back(c);
    }
  }
  return marked;
}

std::string UnmarkSpaces(std::string_view text) {
  std::string plain;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at, kSpaceMark.size()) == kSpaceMark) {
      plain.push_back(' ');
      at += kSpaceMark.size();
    } else {
      plain.push_back(text[at++]);
    }
  }
  return plain;
}

}  // namespace tandem::tokenizer
