// Splits a text at the special tokens that it contains.
#ifndef TANDEM_COMMON_TOKENIZER_SPECIAL_TOKENS_H_
#define TANDEM_COMMON_TOKENIZER_SPECIAL_TOKENS_H_

#include <string_view>
#include <vector>

#include "common/tokenizer/aho_corasick.h"
#include "common/tokenizer/vocabulary.h"

namespace tandem::tokenizer {

// Either a special token, or text that holds none.
struct Fragment {
  TokenId token = kNoToken;
  std::string_view text;  // empty when `token` is set
};

// Immutable and thread-safe. `vocabulary` must outlive it.
class SpecialTokenSplitter {
 public:
  explicit SpecialTokenSplitter(const Vocabulary& vocabulary);

  // The fragments of `text`, in order, without empty ones. User-defined tokens are always found,
  // control and unknown tokens only with `parse_special`. The leftmost token wins, then the
  // longest.
  std::vector<Fragment> Split(std::string_view text, bool parse_special) const;

 private:
  // Strings are stored reversed: a pass from the end of the text finds, at each byte, the longest
  // token that starts there.
  struct Matcher {
    std::vector<TokenId> ids;
    AhoCorasick automaton;
  };

  Matcher MakeMatcher(bool with_control) const;

  const Vocabulary& vocabulary_;
  Matcher user_defined_;
  Matcher all_;
};

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_SPECIAL_TOKENS_H_
