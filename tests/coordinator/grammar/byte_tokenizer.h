// ByteTokenizer: tokens that a test lists; one more, the last, ends a generation.
#ifndef TANDEM_TESTS_COORDINATOR_GRAMMAR_BYTE_TOKENIZER_H_
#define TANDEM_TESTS_COORDINATOR_GRAMMAR_BYTE_TOKENIZER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/tokenizer/tokenizer.h"
#include "coordinator/grammar/token_trie.h"

namespace tandem::coordinator::grammar {

class ByteTokenizer : public tokenizer::Tokenizer {
 public:
  explicit ByteTokenizer(std::vector<std::string> tokens, std::vector<TokenId> control = {})
      : tokens_(std::move(tokens)), control_(std::move(control)) {
    ends_ = {static_cast<TokenId>(tokens_.size())};
    tokens_.push_back("<end>");
  }

  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view,
                                              const tokenizer::EncodeOptions&) const override {
    return absl::UnimplementedError("no text is encoded");
  }
  absl::StatusOr<std::string_view> TokenBytes(TokenId id) const override {
    if (id < 0 || id >= vocab_size()) return absl::InvalidArgumentError("there is no such token");
    return std::string_view(tokens_[static_cast<size_t>(id)]);
  }
  int32_t vocab_size() const override { return static_cast<int32_t>(tokens_.size()); }
  const tokenizer::SpecialTokens& special_tokens() const override { return special_; }
  bool IsEndOfGeneration(TokenId id) const override { return id == ends_[0]; }
  const std::vector<TokenId>& end_of_generation_ids() const override { return ends_; }
  bool IsControl(TokenId id) const override {
    return id == ends_[0] || std::ranges::find(control_, id) != control_.end();
  }
  bool adds_space_prefix() const override { return false; }
  std::string_view chat_template() const override { return {}; }

 private:
  std::vector<std::string> tokens_;
  std::vector<TokenId> control_;
  std::vector<TokenId> ends_;
  tokenizer::SpecialTokens special_;
};

// Of such tokens, for a head that has as many ids and `padding` more.
inline std::shared_ptr<const TokenTrie> TrieOf(std::vector<std::string> tokens,
                                               uint32_t padding = 0) {
  auto tokenizer = std::make_shared<ByteTokenizer>(std::move(tokens));
  const auto vocab_size = static_cast<uint32_t>(tokenizer->vocab_size()) + padding;
  return std::make_shared<const TokenTrie>(std::move(tokenizer), vocab_size);
}

}  // namespace tandem::coordinator::grammar

#endif  // TANDEM_TESTS_COORDINATOR_GRAMMAR_BYTE_TOKENIZER_H_
