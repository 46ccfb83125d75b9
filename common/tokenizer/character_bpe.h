// BPE over characters (Gemma 4): spaces are written as U+2581, and merges apply to the whole text
// between line ends; characters without a token fall back to bytes.
#ifndef TANDEM_COMMON_TOKENIZER_CHARACTER_BPE_H_
#define TANDEM_COMMON_TOKENIZER_CHARACTER_BPE_H_

#include <memory>
#include <string_view>
#include <vector>

#include "common/tokenizer/bpe_merges.h"
#include "common/tokenizer/character_pairs.h"
#include "common/tokenizer/text_encoder.h"
#include "common/tokenizer/vocabulary.h"

namespace tandem::tokenizer {

class CharacterBpeEncoder : public TextEncoder {
 public:
  // INVALID_ARGUMENT as BpeMerges::Create. `vocabulary` must outlive the encoder.
  static absl::StatusOr<std::unique_ptr<CharacterBpeEncoder>> Create(const Vocabulary& vocabulary);

  absl::Status Encode(std::string_view text, bool after_special,
                      std::vector<TokenId>* ids) const override;

 private:
  CharacterBpeEncoder(const Vocabulary& vocabulary, BpeMerges merges);

  // Appends the tokens of `part`, merged, to `ids`.
  absl::Status EncodePart(std::string_view part, BpeWord* word, std::vector<TokenId>* ids) const;
  // Adds the character's token to `word`, or those of its bytes.
  absl::Status AddCharacter(std::string_view character, BpeWord* word) const;

  const Vocabulary& vocabulary_;
  BpeMerges merges_;
  CharacterPairs pairs_;
};

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_CHARACTER_BPE_H_
