#include "common/tokenizer/make_tokenizer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/utf8.h"
#include "common/gguf/quote.h"
#include "common/tokenizer/bpe.h"
#include "common/tokenizer/byte_alphabet.h"
#include "common/tokenizer/character_bpe.h"
#include "common/tokenizer/sentencepiece.h"
#include "common/tokenizer/space_mark.h"
#include "common/tokenizer/special_tokens.h"
#include "common/tokenizer/tokenizer_model.h"

namespace tandem::tokenizer {
namespace {

// The bytes of every token, in one allocation.
class TokenBytesTable {
 public:
  void Add(std::string_view bytes) {
    bytes_ += bytes;
    ends_.push_back(bytes_.size());
  }
  std::string_view Get(TokenId id) const {
    const size_t begin = id == 0 ? 0 : ends_[id - 1];
    return std::string_view(bytes_).substr(begin, ends_[id] - begin);
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

std::string BytesOf(const Vocabulary& vocabulary, TokenId id, bool marks_spaces) {
  const std::string_view text = vocabulary.text(id);
  switch (vocabulary.type(id)) {
    case TokenType::kUnknown:
    case TokenType::kControl:
      return std::string(text);
    case TokenType::kUserDefined:
      // Gemma's runs of spaces, if the converter left them in SentencePiece's form.
      return marks_spaces ? UnmarkSpaces(text) : std::string(text);
    case TokenType::kByte:
      return std::string(1, static_cast<char>(vocabulary.ByteOf(id)));
    case TokenType::kUndefined:
    case TokenType::kNormal:
    case TokenType::kUnused:
      break;
  }
  return marks_spaces ? UnmarkSpaces(text) : AlphabetToBytes(text);
}

class VocabularyTokenizer : public Tokenizer {
 public:
  // `vocabulary` must not move: encoders and splitter refer to it.
  VocabularyTokenizer(std::unique_ptr<const Vocabulary> vocabulary,
                      std::unique_ptr<TextEncoder> encoder, bool adds_space_prefix,
                      bool marks_spaces)
      : vocabulary_(std::move(vocabulary)),
        encoder_(std::move(encoder)),
        splitter_(*vocabulary_),
        adds_space_prefix_(adds_space_prefix) {
    for (TokenId id = 0; id < vocabulary_->size(); ++id) {
      bytes_.Add(BytesOf(*vocabulary_, id, marks_spaces));
    }
  }

  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text,
                                              const EncodeOptions& options) const override {
    if (text.size() > kMaxTextBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the text has ", text.size(), " bytes; at most ", kMaxTextBytes, " can be tokenized"));
    }
    if (const size_t valid = ValidUtf8Prefix(text); valid != text.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the text is not valid UTF-8 at byte ", valid, " of ", text.size()));
    }
    const SpecialTokens& special = vocabulary_->special();
    std::vector<TokenId> ids;
    if (options.add_special && special.add_bos) ids.push_back(special.bos);
    bool after_special = true;
    for (const Fragment& fragment : splitter_.Split(text, options.parse_special)) {
      if (fragment.token != kNoToken) {
        ids.push_back(fragment.token);
        after_special = true;
        continue;
      }
      TANDEM_RETURN_IF_ERROR(encoder_->Encode(fragment.text, after_special, &ids));
      after_special = false;
    }
    if (options.add_special && special.add_eos) ids.push_back(special.eos);
    return ids;
  }

  absl::StatusOr<std::string_view> TokenBytes(TokenId id) const override {
    if (!vocabulary_->Contains(id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("token id ", id, " is outside the vocabulary of ", vocab_size(), " tokens"));
    }
    return bytes_.Get(id);
  }

  int32_t vocab_size() const override { return vocabulary_->size(); }
  const SpecialTokens& special_tokens() const override { return vocabulary_->special(); }

  bool IsEndOfGeneration(TokenId id) const override {
    const std::vector<TokenId>& ends = vocabulary_->end_of_generation();
    return std::binary_search(ends.begin(), ends.end(), id);
  }
  const std::vector<TokenId>& end_of_generation_ids() const override {
    return vocabulary_->end_of_generation();
  }
  std::span<const TokenId> suppressed_ids() const override { return vocabulary_->suppressed(); }
  bool IsControl(TokenId id) const override {
    if (!vocabulary_->Contains(id)) return false;
    const TokenType type = vocabulary_->type(id);
    return type == TokenType::kControl || type == TokenType::kUnknown;
  }

  bool adds_space_prefix() const override { return adds_space_prefix_; }
  std::string_view chat_template() const override { return vocabulary_->data().chat_template; }

 private:
  std::unique_ptr<const Vocabulary> vocabulary_;
  std::unique_ptr<TextEncoder> encoder_;
  SpecialTokenSplitter splitter_;
  TokenBytesTable bytes_;
  bool adds_space_prefix_;
};

absl::StatusOr<std::unique_ptr<TextEncoder>> MakeEncoder(const TokenizerModel& model,
                                                         const Vocabulary& vocabulary,
                                                         bool adds_space_prefix) {
  switch (model.encoder) {
    case EncoderKind::kByteBpe:
      return BpeEncoder::Create(vocabulary);
    case EncoderKind::kSentencePiece:
      return SentencePieceEncoder::Create(vocabulary, adds_space_prefix);
    case EncoderKind::kCharacterBpe:
      return CharacterBpeEncoder::Create(vocabulary);
  }
  return absl::InternalError("a tokenizer model without an encoder");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(VocabularyData data) {
  const TokenizerModel* model = FindTokenizerModel(data.model);
  if (model == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("vocabulary: tokenizer model ", gguf::Quoted(data.model),
                     " is not supported; known: ", SupportedTokenizerModels()));
  }
  TANDEM_ASSIGN_OR_RETURN(Vocabulary checked, Vocabulary::Create(std::move(data)));
  auto vocabulary = std::make_unique<const Vocabulary>(std::move(checked));
  const bool space_prefix =
      model->adds_space_prefix && vocabulary->data().add_space_prefix.value_or(true);
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<TextEncoder> encoder,
                          MakeEncoder(*model, *vocabulary, space_prefix));
  return std::make_unique<VocabularyTokenizer>(std::move(vocabulary), std::move(encoder),
                                               space_prefix, model->marks_spaces);
}

}  // namespace tandem::tokenizer
