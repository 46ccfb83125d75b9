// A vocabulary: token texts, scores, types and special ids, checked once and immutable afterwards.
//
// VocabularyData is a file's content, unchecked; Vocabulary is validated.
#ifndef TANDEM_COMMON_TOKENIZER_VOCABULARY_H_
#define TANDEM_COMMON_TOKENIZER_VOCABULARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/tokenizer/tokenizer.h"

namespace tandem::tokenizer {

// Values of tokenizer.ggml.token_type (GGUF specification).
enum class TokenType : uint8_t {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// A vocabulary as in a file; tests fill it by hand.
struct VocabularyData {
  std::string model;  // a name of tokenizer_model.h
  std::string pre;    // the pre-tokenizer's name; byte-level BPE only
  std::vector<std::string> tokens;
  std::vector<float> scores;        // one per token, or empty: all 0
  std::vector<int32_t> types;       // one TokenType per token, or empty: all normal
  std::vector<std::string> merges;  // "left right", best first; BPE only
  // Special ids; empty if the file does not specify them.
  std::optional<uint64_t> bos, eos, eot, eom, unknown, padding;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
  std::vector<int32_t> suppressed;  // ids that are never drawn; those of no token do not count
  std::string chat_template;
  // White space right after a special token belongs to it and is dropped, except for the tokens
  // excluded by Vocabulary::StripsAfter (Phi-3; its GGUF files do not specify it).
  bool strip_after_special = false;
};

// Immutable and thread-safe. Not copyable: the index refers to the object's texts.
class Vocabulary {
 public:
  // INVALID_ARGUMENT naming the defect: no tokens, wrong lengths, unknown types, bos or eos out of
  // range, a score that is NaN, a byte token whose text names no byte; texts that are too long, too
  // many suppressed tokens.
  static absl::StatusOr<Vocabulary> Create(VocabularyData data);

  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  int32_t size() const { return static_cast<int32_t>(data_.tokens.size()); }
  bool Contains(TokenId id) const { return id >= 0 && id < size(); }

  // REQUIRES, for all three: Contains(id).
  std::string_view text(TokenId id) const { return data_.tokens[id]; }
  float score(TokenId id) const { return data_.scores.empty() ? 0 : data_.scores[id]; }
  TokenType type(TokenId id) const { return types_[id]; }

  // The token with this text, of any type; the last one if several share it. kNoToken: none. An
  // empty token is never found.
  TokenId Find(std::string_view text) const;
  // Like Find, for plain text: never a control, unknown or byte token.
  TokenId FindPlain(std::string_view text) const;
  // The token of type byte for `byte`, or kNoToken.
  TokenId ByteToken(uint8_t byte) const { return byte_tokens_[byte]; }
  // The byte of a token of type byte. REQUIRES: type(id) == kByte.
  uint8_t ByteOf(TokenId id) const;

  // True when white space that follows special token `id` in a text is dropped.
  bool StripsAfter(TokenId id) const;

  const SpecialTokens& special() const { return special_; }
  const std::vector<TokenId>& end_of_generation() const { return end_of_generation_; }
  const std::vector<TokenId>& suppressed() const { return suppressed_; }  // ascending
  size_t max_token_bytes() const { return max_token_bytes_; }
  const VocabularyData& data() const { return data_; }

 private:
  Vocabulary() = default;
  absl::Status CheckTokens();
  absl::Status SetTypes();
  absl::Status SetByteTokens();
  absl::Status SetSpecialIds();
  void DetectEndsByText();
  void SetSuppressed();
  // Find, and marks the token as control: some converters forget to.
  TokenId FindControl(std::string_view text);

  VocabularyData data_;
  std::vector<TokenType> types_;
  absl::flat_hash_map<absl::string_view, TokenId> index_;  // views into data_.tokens
  std::vector<TokenId> byte_tokens_;                       // 256
  SpecialTokens special_;
  std::vector<TokenId> end_of_generation_;  // ascending
  std::vector<TokenId> suppressed_;
  size_t max_token_bytes_ = 0;
};

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_VOCABULARY_H_
