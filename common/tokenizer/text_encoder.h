// The part of a tokenizer that differs between models: plain text to ids.
#ifndef TANDEM_COMMON_TOKENIZER_TEXT_ENCODER_H_
#define TANDEM_COMMON_TOKENIZER_TEXT_ENCODER_H_

#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/tokenizer/tokenizer.h"

namespace tandem::tokenizer {

// Immutable and thread-safe.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;
  // Appends the ids of `text` to `ids`. REQUIRES: valid UTF-8 of at most kMaxTextBytes.
  // `after_special`: the text is at the very beginning or right after a special token.
  virtual absl::Status Encode(std::string_view text, bool after_special,
                              std::vector<TokenId>* ids) const = 0;
};

// Positions fit in 32 bits, even if a space becomes three bytes.
inline constexpr size_t kMaxTextBytes = size_t{1} << 30;

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_TEXT_ENCODER_H_
