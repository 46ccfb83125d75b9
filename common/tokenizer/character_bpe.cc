#include "common/tokenizer/character_bpe.h"

#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/utf8.h"
#include "common/tokenizer/space_mark.h"

namespace tandem::tokenizer {
namespace {

// The length of the run of line ends, or of anything else, that `text` begins with.
size_t FirstRun(std::string_view text) {
  const size_t end = text.front() == '\n' ? text.find_first_not_of('\n') : text.find_first_of('\n');
  return end == std::string_view::npos ? text.size() : end;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CharacterBpeEncoder>> CharacterBpeEncoder::Create(
    const Vocabulary& vocabulary) {
  TANDEM_ASSIGN_OR_RETURN(BpeMerges merges, BpeMerges::Create(vocabulary));
  return std::unique_ptr<CharacterBpeEncoder>(
      new CharacterBpeEncoder(vocabulary, std::move(merges)));
}

CharacterBpeEncoder::CharacterBpeEncoder(const Vocabulary& vocabulary, BpeMerges merges)
    : vocabulary_(vocabulary), merges_(std::move(merges)), pairs_(vocabulary) {}

absl::Status CharacterBpeEncoder::Encode(std::string_view text, bool /*after_special*/,
                                         std::vector<TokenId>* ids) const {
  const std::string marked = MarkSpaces(text, /*prefix=*/false);
  BpeWord word;
  absl::Status status;
  for (std::string_view rest = marked; !rest.empty();) {
    const std::string_view run = rest.substr(0, FirstRun(rest));
    rest.remove_prefix(run.size());
    const TokenId whole = run.front() == '\n' ? vocabulary_.FindPlain(run) : kNoToken;
    if (whole != kNoToken) {
      ids->push_back(whole);
      continue;
    }
    pairs_.ForEachPart(run, [&](std::string_view part) {
      if (status.ok()) status = EncodePart(part, &word, ids);
    });
    TANDEM_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::Status CharacterBpeEncoder::EncodePart(std::string_view part, BpeWord* word,
                                             std::vector<TokenId>* ids) const {
  word->Clear();
  for (size_t at = 0; at < part.size();) {
    const size_t bytes = Utf8Length(static_cast<uint8_t>(part[at]));
    TANDEM_RETURN_IF_ERROR(AddCharacter(part.substr(at, bytes), word));
    at += bytes;
  }
  merges_.Merge(word, ids);
  return absl::OkStatus();
}

absl::Status CharacterBpeEncoder::AddCharacter(std::string_view character, BpeWord* word) const {
  if (const TokenId token = vocabulary_.FindPlain(character); token != kNoToken) {
    word->Add(token);
    return absl::OkStatus();
  }
  for (const char c : character) {
    const uint8_t byte = static_cast<uint8_t>(c);
    const TokenId token = vocabulary_.ByteToken(byte);
    if (token == kNoToken) {
      return absl::InvalidArgumentError(
          absl::StrFormat("the vocabulary has no token for byte 0x%02x of the text", byte));
    }
    word->Add(token);
  }
  return absl::OkStatus();
}

}  // namespace tandem::tokenizer
