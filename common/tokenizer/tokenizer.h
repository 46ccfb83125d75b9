// The tokenizer's interface: text to token ids, and ids to raw bytes.
//
// A Tokenizer is immutable once made and thread-safe. Decoding gives bytes: one token may be a part
// of a character, so valid UTF-8 is the task of IncrementalDetokenizer (detokenizer.h).
#ifndef TANDEM_COMMON_TOKENIZER_TOKENIZER_H_
#define TANDEM_COMMON_TOKENIZER_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace tandem::tokenizer {

// "The vocabulary has no such token."
inline constexpr TokenId kNoToken = -1;

// Tokens that a vocabulary may have suppressed.
inline constexpr size_t kMaxSuppressed = 64;

struct EncodeOptions {
  // BOS before and EOS after the text, if the vocabulary requires them.
  bool add_special = true;
  // Control tokens (GGUF token types 2 and 3) written out in the text ("<|eot_id|>") become that
  // token. Off: they are plain text, and nothing in a text can become a control token. User-defined
  // tokens (type 4: Gemma's runs of spaces, added words) are found either way, before anything
  // else, as in llama.cpp and Hugging Face's tokenizers.
  bool parse_special = false;
};

// kNoToken if the vocabulary has none.
struct SpecialTokens {
  TokenId bos = kNoToken;
  TokenId eos = kNoToken;
  TokenId eot = kNoToken;  // end of turn
  TokenId eom = kNoToken;  // end of message (a tool call follows)
  TokenId unknown = kNoToken;
  TokenId padding = kNoToken;
  bool add_bos = false;
  bool add_eos = false;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // INVALID_ARGUMENT when `text` is not UTF-8, is longer than 1 GiB or holds a byte that the
  // vocabulary cannot express. Time is O(n log n) in the worst case.
  virtual absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text,
                                                      const EncodeOptions& options) const = 0;

  // The bytes of token `id`; of a control token, its name. Valid as long as the tokenizer.
  // INVALID_ARGUMENT when `id` is outside the vocabulary.
  virtual absl::StatusOr<std::string_view> TokenBytes(TokenId id) const = 0;

  virtual int32_t vocab_size() const = 0;
  virtual const SpecialTokens& special_tokens() const = 0;

  // True when generation ends on `id`: eos, eot, eom and similar. False for ids out of range.
  virtual bool IsEndOfGeneration(TokenId id) const = 0;
  // The same as a list, ascending.
  virtual const std::vector<TokenId>& end_of_generation_ids() const = 0;
  // Ids that no answer has, ascending: what a model draws for other modalities, say.
  virtual std::span<const TokenId> suppressed_ids() const { return {}; }
  // True for control and unknown tokens: they control the model and are not part of the text. False
  // for ids out of range.
  virtual bool IsControl(TokenId id) const = 0;

  // True when Encode puts a space before the text, which decoding of a whole text removes.
  virtual bool adds_space_prefix() const = 0;
  // Jinja text from the model file, or empty.
  virtual std::string_view chat_template() const = 0;
};

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_TOKENIZER_H_
