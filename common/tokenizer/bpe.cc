#include "common/tokenizer/bpe.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/gguf/quote.h"
#include "common/tokenizer/byte_alphabet.h"

namespace tandem::tokenizer {

absl::StatusOr<std::unique_ptr<BpeEncoder>> BpeEncoder::Create(const Vocabulary& vocabulary) {
  const std::string& pre = vocabulary.data().pre;
  const PretokenizerSpec* spec = FindPretokenizer(pre);
  if (spec == nullptr) {
    const std::string found =
        pre.empty() ? "the file names no pre-tokenizer (key tokenizer.ggml.pre)"
                    : absl::StrCat("pre-tokenizer ", gguf::Quoted(pre), " is not supported");
    return absl::InvalidArgumentError(
        absl::StrCat("vocabulary: ", found, "; known: ", SupportedPretokenizers()));
  }
  TANDEM_ASSIGN_OR_RETURN(Pretokenizer pretokenizer, Pretokenizer::Create(*spec));
  TANDEM_ASSIGN_OR_RETURN(BpeMerges merges, BpeMerges::Create(vocabulary));
  return std::unique_ptr<BpeEncoder>(new BpeEncoder(vocabulary, std::move(pretokenizer),
                                                    std::move(merges), spec->whole_words_first));
}

BpeEncoder::BpeEncoder(const Vocabulary& vocabulary, Pretokenizer pretokenizer, BpeMerges merges,
                       bool whole_words_first)
    : vocabulary_(vocabulary),
      pretokenizer_(std::move(pretokenizer)),
      merges_(std::move(merges)),
      whole_words_first_(whole_words_first) {
  for (int byte = 0; byte < 256; ++byte) {
    byte_tokens_[byte] = vocabulary_.Find(ByteToAlphabet(static_cast<uint8_t>(byte)));
  }
}

absl::Status BpeEncoder::Encode(std::string_view text, bool /*after_special*/,
                                std::vector<TokenId>* ids) const {
  TANDEM_ASSIGN_OR_RETURN(std::vector<std::string_view> words, pretokenizer_.Split(text));
  BpeWord scratch;
  for (std::string_view word : words) {
    if (whole_words_first_ && word.size() <= vocabulary_.max_token_bytes()) {
      const TokenId whole = vocabulary_.FindPlain(BytesToAlphabet(word));
      if (whole != kNoToken) {
        ids->push_back(whole);
        continue;
      }
    }
    TANDEM_RETURN_IF_ERROR(EncodeWord(word, &scratch, ids));
  }
  return absl::OkStatus();
}

absl::Status BpeEncoder::EncodeWord(std::string_view text, BpeWord* word,
                                    std::vector<TokenId>* ids) const {
  word->Clear();
  for (const char c : text) {
    const uint8_t byte = static_cast<uint8_t>(c);
    if (byte_tokens_[byte] == kNoToken) {
      return absl::InvalidArgumentError(
          absl::StrFormat("the vocabulary has no token for byte 0x%02x of the text", byte));
    }
    word->Add(byte_tokens_[byte]);
  }
  merges_.Merge(word, ids);
  return absl::OkStatus();
}

}  // namespace tandem::tokenizer
