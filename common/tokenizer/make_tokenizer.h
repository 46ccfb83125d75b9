// Makes the tokenizer for a vocabulary.
#ifndef TANDEM_COMMON_TOKENIZER_MAKE_TOKENIZER_H_
#define TANDEM_COMMON_TOKENIZER_MAKE_TOKENIZER_H_

#include <memory>

#include "common/tokenizer/tokenizer.h"
#include "common/tokenizer/vocabulary.h"

namespace tandem::tokenizer {

// INVALID_ARGUMENT, in one line that names the defect, when the vocabulary is broken or of a kind
// that is not supported. Supported models: "gpt2" (byte-level BPE) and "llama" (SentencePiece BPE).
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(VocabularyData data);

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_MAKE_TOKENIZER_H_
