// The data table of pre-tokenizers: which patterns cut a text into words before merges are applied.
//
// A pattern list belongs to a model family (its tokenizer.json) and is named by tokenizer.ggml.pre.
#ifndef TANDEM_COMMON_TOKENIZER_PRETOKENIZER_PATTERNS_H_
#define TANDEM_COMMON_TOKENIZER_PRETOKENIZER_PATTERNS_H_

#include <string>
#include <string_view>
#include <vector>

namespace tandem::tokenizer {

struct PretokenizerSpec {
  std::vector<std::string_view> names;
  // PCRE2 patterns, applied in sequence: each cuts every piece that the ones before it left into
  // its matches and the gaps between them.
  std::vector<std::string_view> patterns;
  // A word that is a token becomes that token, regardless of merges.
  bool whole_words_first = false;
  // BOS is added if the file does not specify it.
  bool adds_bos = false;
};

// The spec of this name, or nullptr. Thread-safe.
const PretokenizerSpec* FindPretokenizer(std::string_view name);

// "deepseek-llm, gpt-2, ...": for error messages.
std::string SupportedPretokenizers();

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_PRETOKENIZER_PATTERNS_H_
