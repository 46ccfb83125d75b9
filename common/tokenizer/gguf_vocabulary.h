// Reads a vocabulary from the tokenizer.* metadata of a GGUF file.
//
// Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The default of a missing flag
// depends on the kind of tokenizer, as in llama.cpp: add_bos_token is true for SentencePiece and
// for the pre-tokenizers that require it, add_eos_token is false, add_space_prefix is true only for
// SentencePiece. remove_extra_whitespaces is not read: it is for Unigram vocabularies, which are
// not supported.
#ifndef TANDEM_COMMON_TOKENIZER_GGUF_VOCABULARY_H_
#define TANDEM_COMMON_TOKENIZER_GGUF_VOCABULARY_H_

#include <memory>

#include "common/gguf/metadata.h"
#include "common/tokenizer/tokenizer.h"
#include "common/tokenizer/vocabulary.h"

namespace tandem::tokenizer {

// A copy of the file's vocabulary. INVALID_ARGUMENT naming the key that is missing or of a wrong
// type.
absl::StatusOr<VocabularyData> ReadVocabulary(const gguf::Metadata& metadata);

// The file's tokenizer; it keeps no reference to the file. INVALID_ARGUMENT as ReadVocabulary and
// MakeTokenizer.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizerFromGguf(const gguf::Metadata& metadata);

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_GGUF_VOCABULARY_H_
