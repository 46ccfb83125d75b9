// The data table of tokenizer models: what tokenizer.ggml.model names.
//
// Plain constant data, thread-safe.
#ifndef TANDEM_COMMON_TOKENIZER_TOKENIZER_MODEL_H_
#define TANDEM_COMMON_TOKENIZER_TOKENIZER_MODEL_H_

#include <string>
#include <string_view>

#include "common/tokenizer/tokenizer.h"

namespace tandem::tokenizer {

enum class EncoderKind { kByteBpe, kSentencePiece, kCharacterBpe };

struct TokenizerModel {
  std::string_view name;         // as in files
  std::string_view description;  // for error messages
  EncoderKind encoder = EncoderKind::kByteBpe;
  bool has_merges = true;
  bool marks_spaces = false;       // a space in a token's text is U+2581
  bool adds_space_prefix = false;  // unless the file says otherwise
  bool usually_adds_bos = false;   // likewise
  bool always_adds_bos = false;    // whatever the file says
  // Of files that do not state them.
  TokenId bos = kNoToken;
  TokenId eos = kNoToken;
  TokenId unknown = kNoToken;
  TokenId padding = kNoToken;
};

// The model of this name, or nullptr.
const TokenizerModel* FindTokenizerModel(std::string_view name);

// "gpt2 (byte-level BPE), ...": for error messages.
std::string SupportedTokenizerModels();

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_TOKENIZER_MODEL_H_
