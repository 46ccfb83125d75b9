// What tests of BPE compare with.
#ifndef TANDEM_TESTS_COMMON_TOKENIZER_BPE_REFERENCE_H_
#define TANDEM_TESTS_COMMON_TOKENIZER_BPE_REFERENCE_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "common/tokenizer/tokenizer.h"

namespace tandem::tokenizer {

inline constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};

// The bytes of the text's tokens.
inline std::vector<std::string> Parts(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> parts;
  const std::vector<TokenId> ids = tokenizer.Encode(text, kPlain).value();
  for (TokenId id : ids) parts.emplace_back(tokenizer.TokenBytes(id).value());
  return parts;
}

// Merges `parts`, looking through all neighbours before every merge.
inline std::vector<std::string> NaiveMerge(std::vector<std::string> parts,
                                           const std::vector<std::string>& merges) {
  while (true) {
    size_t best = merges.size(), at = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const std::string pair = parts[i] + " " + parts[i + 1];
      const size_t rank = std::find(merges.begin(), merges.end(), pair) - merges.begin();
      if (rank < best) best = rank, at = i;
    }
    if (best == merges.size()) return parts;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + at + 1);
  }
}

}  // namespace tandem::tokenizer

#endif  // TANDEM_TESTS_COMMON_TOKENIZER_BPE_REFERENCE_H_
