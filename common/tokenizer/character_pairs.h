// The pairs of characters that are adjacent in some token of a vocabulary.
//
// No merge spans two characters that are adjacent in no token, so a text is cut there and its parts
// are merged separately: short lists stay in cache.
#ifndef TANDEM_COMMON_TOKENIZER_CHARACTER_PAIRS_H_
#define TANDEM_COMMON_TOKENIZER_CHARACTER_PAIRS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "common/base/utf8.h"
#include "common/tokenizer/vocabulary.h"

namespace tandem::tokenizer {

// Immutable and thread-safe.
class CharacterPairs {
 public:
  explicit CharacterPairs(const Vocabulary& vocabulary);

  // Calls visit(part) for the parts of `text`, in order. REQUIRES: `text` is valid UTF-8 and not
  // empty.
  template <typename Visit>
  void ForEachPart(std::string_view text, Visit visit) const {
    size_t begin = 0;
    ForEachPair(text, [&](size_t at, uint64_t pair) {
      if (pairs_.contains(pair)) return;
      visit(text.substr(begin, at - begin));
      begin = at;
    });
    visit(text.substr(begin));
  }

 private:
  // Calls visit(offset, pair) for every two adjacent characters; `offset` is the right one's.
  // REQUIRES: `text` is valid UTF-8.
  template <typename Visit>
  static void ForEachPair(std::string_view text, Visit visit) {
    uint64_t left = 0;
    for (size_t at = 0; at < text.size();) {
      const size_t bytes = Utf8Length(static_cast<uint8_t>(text[at]));
      // The character as a number: its UTF-8 bytes.
      uint64_t right = 0;
      for (size_t i = 0; i < bytes; ++i) right = right << 8 | static_cast<uint8_t>(text[at + i]);
      if (at > 0) visit(at, left << 32 | right);
      left = right;
      at += bytes;
    }
  }

  absl::flat_hash_set<uint64_t> pairs_;
};

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_CHARACTER_PAIRS_H_
