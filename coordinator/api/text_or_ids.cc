#include "coordinator/api/text_or_ids.h"

#include <utility>

namespace tandem::coordinator {

absl::StatusOr<std::vector<TokenId>> IdsOf(TextOrIds content, const tokenizer::Tokenizer& tokenizer,
                                           const tokenizer::EncodeOptions& options) {
  if (auto* ids = std::get_if<std::vector<TokenId>>(&content)) return std::move(*ids);
  const auto* text = std::get_if<std::string>(&content);
  if (text == nullptr) {
    return absl::InvalidArgumentError("the request has no prompt: set text or token_ids");
  }
  if (text->empty()) return std::vector<TokenId>();
  return tokenizer.Encode(*text, options);
}

}  // namespace tandem::coordinator
