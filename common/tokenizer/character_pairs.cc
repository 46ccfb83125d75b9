#include "common/tokenizer/character_pairs.h"

namespace tandem::tokenizer {

CharacterPairs::CharacterPairs(const Vocabulary& vocabulary) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    if (ValidUtf8Prefix(text) != text.size()) continue;  // not valid UTF-8: cannot occur in a text
    ForEachPair(text, [&](size_t, uint64_t pair) { pairs_.insert(pair); });
  }
}

}  // namespace tandem::tokenizer
