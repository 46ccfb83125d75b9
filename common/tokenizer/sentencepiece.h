// SentencePiece BPE (Llama 2, Phi-3): neighbouring characters are merged, the token with the best
// score first; characters without a token fall back to bytes. Source: Kudo and Richardson 2018
// (arXiv:1808.06226).
#ifndef TANDEM_COMMON_TOKENIZER_SENTENCEPIECE_H_
#define TANDEM_COMMON_TOKENIZER_SENTENCEPIECE_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "common/tokenizer/character_pairs.h"
#include "common/tokenizer/text_encoder.h"
#include "common/tokenizer/vocabulary.h"

namespace tandem::tokenizer {

class SentencePieceEncoder : public TextEncoder {
 public:
  // INVALID_ARGUMENT when the vocabulary has no scores. REQUIRES: its model is "llama".
  // `vocabulary` must outlive the encoder.
  static absl::StatusOr<std::unique_ptr<SentencePieceEncoder>> Create(const Vocabulary& vocabulary,
                                                                      bool add_space_prefix);

  absl::Status Encode(std::string_view text, bool after_special,
                      std::vector<TokenId>* ids) const override;

 private:
  SentencePieceEncoder(const Vocabulary& vocabulary, bool add_space_prefix);

  // Appends the token of `piece`, or those of its bytes, or the unknown token.
  void Emit(std::string_view piece, std::vector<TokenId>* ids) const;

  const Vocabulary& vocabulary_;
  const bool add_space_prefix_;
  const std::vector<uint32_t> ranks_;  // by token: the best score is 0
  const CharacterPairs pairs_;
};

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_SENTENCEPIECE_H_
