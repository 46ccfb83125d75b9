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

#include "absl/container/flat_hash_map.h"
#include "common/tokenizer/pretokenizer.h"
#include "common/tokenizer/text_encoder.h"
#include "common/tokenizer/vocabulary.h"

namespace tandem::tokenizer {

class BpeEncoder : public TextEncoder {
 public:
  // INVALID_ARGUMENT when the pre-tokenizer is not known, or a merge is malformed or refers to or
  // produces a string that is not a token. `vocabulary` must outlive the encoder.
  static absl::StatusOr<std::unique_ptr<BpeEncoder>> Create(const Vocabulary& vocabulary);

  absl::Status Encode(std::string_view text, bool after_special,
                      std::vector<TokenId>* ids) const override;

 private:
  struct Scratch;

  BpeEncoder(const Vocabulary& vocabulary, Pretokenizer pretokenizer, bool whole_words_first);
  absl::Status ReadMerges();
  absl::Status EncodeWord(std::string_view word, Scratch* scratch, std::vector<TokenId>* ids) const;
  // The rank of merging the neighbours; the largest number where they do not merge.
  uint32_t Rank(TokenId left, TokenId right) const;

  const Vocabulary& vocabulary_;
  Pretokenizer pretokenizer_;
  bool whole_words_first_;
  std::array<TokenId, 256> byte_tokens_;
  std::vector<TokenId> results_;                     // of each merge, by rank
  absl::flat_hash_map<uint64_t, uint32_t> rank_of_;  // (left, right) -> rank
};

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_BPE_H_
