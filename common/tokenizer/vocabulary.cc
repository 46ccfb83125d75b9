#include "common/tokenizer/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/strings.h"
#include "common/tokenizer/end_texts.h"
#include "common/tokenizer/pretokenizer_patterns.h"
#include "common/tokenizer/tokenizer_model.h"

namespace tandem::tokenizer {
namespace {

constexpr int kMaxTokenType = static_cast<int>(TokenType::kByte);

// Of a token's text, and of the texts of all that are found in a text before anything else: each of
// their bytes takes a hundred or so in the automata that find them.
constexpr size_t kMaxTokenBytes = size_t{64} << 10;
constexpr size_t kMaxSpecialBytes = size_t{4} << 20;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// The byte that "<0x1F>" names, or -1.
int ParseByteText(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return -1;
  int high = HexDigit(text[3]), low = HexDigit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

absl::Status WrongLength(std::string_view what, size_t found, size_t needed) {
  return absl::InvalidArgumentError(absl::StrCat("vocabulary: ", Sv(what), " has ", found,
                                                 " entries, but there are ", needed, " tokens"));
}

}  // namespace

absl::StatusOr<Vocabulary> Vocabulary::Create(VocabularyData data) {
  Vocabulary vocabulary;
  vocabulary.data_ = std::move(data);
  TANDEM_RETURN_IF_ERROR(vocabulary.CheckTokens());
  TANDEM_RETURN_IF_ERROR(vocabulary.SetTypes());
  TANDEM_RETURN_IF_ERROR(vocabulary.SetByteTokens());
  TANDEM_RETURN_IF_ERROR(vocabulary.SetSpecialIds());
  vocabulary.DetectEndsByText();
  vocabulary.SetSuppressed();
  if (vocabulary.suppressed_.size() > kMaxSuppressed) {
    return absl::InvalidArgumentError(absl::StrCat("vocabulary: ", vocabulary.suppressed_.size(),
                                                   " tokens are suppressed, at most ",
                                                   kMaxSuppressed, " may be"));
  }
  return vocabulary;
}

absl::Status Vocabulary::CheckTokens() {
  const size_t count = data_.tokens.size();
  if (count == 0) return absl::InvalidArgumentError("vocabulary: there are no tokens");
  if (count > static_cast<size_t>(std::numeric_limits<TokenId>::max())) {
    return absl::InvalidArgumentError(
        absl::StrCat("vocabulary: ", count, " tokens are more than ids of 31 bits can name"));
  }
  if (!data_.scores.empty() && data_.scores.size() != count) {
    return WrongLength("the list of scores", data_.scores.size(), count);
  }
  for (size_t i = 0; i < data_.scores.size(); ++i) {
    if (std::isnan(data_.scores[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("vocabulary: the score of token ", i, " is not a number"));
    }
  }
  index_.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const std::string& text = data_.tokens[i];
    if (text.size() > kMaxTokenBytes) {
      return absl::InvalidArgumentError(absl::StrCat("vocabulary: token ", i, " has ", text.size(),
                                                     " bytes, at most ", kMaxTokenBytes));
    }
    max_token_bytes_ = std::max(max_token_bytes_, text.size());
    if (!text.empty()) index_[text] = static_cast<TokenId>(i);
  }
  return absl::OkStatus();
}

absl::Status Vocabulary::SetTypes() {
  types_.assign(data_.tokens.size(), TokenType::kNormal);
  if (data_.types.empty()) return absl::OkStatus();
  if (data_.types.size() != data_.tokens.size()) {
    return WrongLength("the list of token types", data_.types.size(), data_.tokens.size());
  }
  size_t special_bytes = 0;
  for (size_t i = 0; i < types_.size(); ++i) {
    const int32_t type = data_.types[i];
    if (type < 0 || type > kMaxTokenType) {
      return absl::InvalidArgumentError(absl::StrCat("vocabulary: token ", i, " has type ", type,
                                                     "; types are 0 to ", kMaxTokenType));
    }
    types_[i] = static_cast<TokenType>(type);
    const bool is_found_first = types_[i] == TokenType::kControl ||
                                types_[i] == TokenType::kUnknown ||
                                types_[i] == TokenType::kUserDefined;
    if (is_found_first) special_bytes += data_.tokens[i].size();
  }
  if (special_bytes <= kMaxSpecialBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("vocabulary: the texts of special tokens have ",
                                                 special_bytes, " bytes, at most ",
                                                 kMaxSpecialBytes));
}

absl::Status Vocabulary::SetByteTokens() {
  byte_tokens_.assign(256, kNoToken);
  for (TokenId id = 0; id < size(); ++id) {
    if (types_[id] != TokenType::kByte) continue;
    const int byte = ParseByteText(text(id));
    if (byte < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "vocabulary: token ", id, " is of type byte, but its text is not like <0x1F>"));
    }
    byte_tokens_[byte] = id;
  }
  return absl::OkStatus();
}

absl::Status Vocabulary::SetSpecialIds() {
  struct Entry {
    const char* name;
    std::optional<uint64_t> stated;
    TokenId* id;
    TokenId fallback;     // if the file has none
    bool needed = false;  // one that is no token's id is an error; of the others it counts as none
  };
  const TokenizerModel* known = FindTokenizerModel(data_.model);
  const TokenizerModel model = known == nullptr ? TokenizerModel{} : *known;
  const Entry entries[] = {
      {"bos", data_.bos, &special_.bos, model.bos, true},
      {"eos", data_.eos, &special_.eos, model.eos, true},
      {"eot", data_.eot, &special_.eot, kNoToken},
      {"eom", data_.eom, &special_.eom, kNoToken},
      {"unknown", data_.unknown, &special_.unknown, model.unknown},
      {"padding", data_.padding, &special_.padding, model.padding},
  };
  for (const Entry& entry : entries) {
    const bool is_token = entry.stated.has_value() && *entry.stated < data_.tokens.size();
    if (!is_token && (!entry.stated.has_value() || !entry.needed)) {
      *entry.id = entry.fallback < size() ? entry.fallback : kNoToken;
      continue;
    }
    if (!is_token) {
      return absl::InvalidArgumentError(absl::StrCat("vocabulary: the ", entry.name,
                                                     " token id is ", *entry.stated,
                                                     ", but there are only ", size(), " tokens"));
    }
    *entry.id = static_cast<TokenId>(*entry.stated);
  }

  const PretokenizerSpec* spec =
      model.encoder == EncoderKind::kByteBpe ? FindPretokenizer(data_.pre) : nullptr;
  const bool usually_bos = model.usually_adds_bos || (spec != nullptr && spec->adds_bos);
  special_.add_bos =
      model.always_adds_bos || data_.add_bos.value_or(usually_bos && special_.bos != kNoToken);
  special_.add_eos = data_.add_eos.value_or(false);
  if (special_.add_bos && special_.bos == kNoToken) {
    return absl::InvalidArgumentError("vocabulary: BOS shall be added, but there is no bos token");
  }
  if (special_.add_eos && special_.eos == kNoToken) {
    return absl::InvalidArgumentError("vocabulary: EOS shall be added, but there is no eos token");
  }
  return absl::OkStatus();
}

void Vocabulary::DetectEndsByText() {
  const bool has_messages = std::ranges::any_of(kEndsOfMessageFormats, [&](const auto& ends) {
    return std::ranges::all_of(ends, [&](auto text) { return Find(text) != kNoToken; });
  });
  std::vector<TokenId> ends;
  for (const EndText& end : kEndTexts) {
    const TokenId id = FindControl(end.text);
    if (has_messages && end.text == kMessageEnd) continue;
    if (end.is_eot && special_.eot == kNoToken) special_.eot = id;
    ends.push_back(id);
  }
  if (special_.eom == kNoToken) special_.eom = Find(kEndOfMessageText);
  ends.insert(ends.end(), {special_.eos, special_.eot, special_.eom});
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  if (!ends.empty() && ends.front() == kNoToken) ends.erase(ends.begin());
  end_of_generation_ = std::move(ends);
}

void Vocabulary::SetSuppressed() {
  for (const int32_t id : data_.suppressed) {
    if (Contains(id)) suppressed_.push_back(id);
  }
  std::sort(suppressed_.begin(), suppressed_.end());
  suppressed_.erase(std::unique(suppressed_.begin(), suppressed_.end()), suppressed_.end());
}

TokenId Vocabulary::FindControl(std::string_view text) {
  const TokenId id = Find(text);
  if (id != kNoToken) types_[id] = TokenType::kControl;
  return id;
}

TokenId Vocabulary::Find(std::string_view text) const {
  auto it = index_.find(Sv(text));
  return it == index_.end() ? kNoToken : it->second;
}

TokenId Vocabulary::FindPlain(std::string_view text) const {
  const TokenId id = Find(text);
  if (id == kNoToken) return kNoToken;
  const TokenType type = types_[id];
  const bool plain =
      type != TokenType::kControl && type != TokenType::kUnknown && type != TokenType::kByte;
  return plain ? id : kNoToken;
}

uint8_t Vocabulary::ByteOf(TokenId id) const {
  return static_cast<uint8_t>(ParseByteText(data_.tokens[id]));
}

bool Vocabulary::StripsAfter(TokenId id) const {
  if (!data_.strip_after_special) return false;
  const std::string_view name = text(id);
  return name != "<unk>" && name != "<s>" && name != "<|endoftext|>";
}

}  // namespace tandem::tokenizer
