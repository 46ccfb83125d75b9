#include "common/tokenizer/detokenizer.h"

namespace tandem::tokenizer {

absl::StatusOr<std::string> IncrementalDetokenizer::Append(TokenId id) {
  TANDEM_ASSIGN_OR_RETURN(std::string_view bytes, tokenizer_->TokenBytes(id));
  std::string text;
  if (options_.skip_special && tokenizer_->IsControl(id)) return text;
  if (strip_space_ && !bytes.empty()) {
    if (tokenizer_->adds_space_prefix() && bytes.front() == ' ') bytes.remove_prefix(1);
    strip_space_ = false;
  }
  utf8_.Append(bytes, &text);
  return text;
}

std::string IncrementalDetokenizer::Flush() {
  std::string text;
  utf8_.Flush(&text);
  return text;
}

absl::StatusOr<std::string> Decode(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                                   const DecodeOptions& options) {
  IncrementalDetokenizer detokenizer(tokenizer, options);
  std::string text;
  for (TokenId id : ids) {
    TANDEM_ASSIGN_OR_RETURN(std::string more, detokenizer.Append(id));
    text += more;
  }
  text += detokenizer.Flush();
  return text;
}

}  // namespace tandem::tokenizer
