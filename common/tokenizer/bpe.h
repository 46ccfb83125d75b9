// Byte-level BPE (GPT-2 and its descendants): a text is cut into words, a word into bytes, and
// neighbours are merged, the best-ranked pair first. Source: Sennrich et al. 2016
// (arXiv:1508.07909), Radford et al. 2019.
#ifndef TANDEM_COMMON_TOKENIZER_BPE_H_
#define TANDEM_COMMON_TOKENIZER_BPE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "common/tokenizer/bpe_merges.h"
#include "common/tokenizer/pretokenizer.h"
#include "common/tokenizer/text_encoder.h"
#include "common/tokenizer/vocabulary.h"

namespace tandem::tokenizer {

class BpeEncoder : public TextEncoder {
 public:
  // INVALID_ARGUMENT when the pre-tokenizer is not known, and as BpeMerges::Create. `vocabulary`
  // must outlive the encoder.
  static absl::StatusOr<std::unique_ptr<BpeEncoder>> Create(const Vocabulary& vocabulary);

  absl::Status Encode(std::string_view text, bool after_special,
                      std::vector<TokenId>* ids) const override;

 private:
  BpeEncoder(const Vocabulary& vocabulary, Pretokenizer pretokenizer, BpeMerges merges,
             bool whole_words_first);
  // Appends the tokens of `text`, merged, to `ids`.
  absl::Status EncodeWord(std::string_view text, BpeWord* word, std::vector<TokenId>* ids) const;

  const Vocabulary& vocabulary_;
  Pretokenizer pretokenizer_;
  BpeMerges merges_;
  bool whole_words_first_;
  std::array<TokenId, 256> byte_tokens_;
};

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_BPE_H_
