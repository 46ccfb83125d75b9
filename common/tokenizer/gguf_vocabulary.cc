#include "common/tokenizer/gguf_vocabulary.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/strings.h"
#include "common/gguf/quote.h"
#include "common/tokenizer/make_tokenizer.h"
#include "common/tokenizer/tokenizer_model.h"

namespace tandem::tokenizer {
namespace {

constexpr std::string_view kModel = "tokenizer.ggml.model";
constexpr std::string_view kPre = "tokenizer.ggml.pre";
constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kSuppressed = "tokenizer.ggml.suppress_tokens";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";
constexpr std::string_view kChatTemplate = "tokenizer.chat_template";
constexpr std::string_view kName = "general.name";

std::vector<std::string> ToStrings(const gguf::StringArray& views) {
  std::vector<std::string> strings;
  strings.reserve(views.size());
  for (std::string_view view : views) strings.emplace_back(view);
  return strings;
}

absl::Status ReadLists(const gguf::Metadata& metadata, VocabularyData* data) {
  TANDEM_ASSIGN_OR_RETURN(gguf::StringArray tokens, metadata.GetStrings(kTokens));
  data->tokens = ToStrings(tokens);
  if (metadata.Has(kScores)) {
    TANDEM_ASSIGN_OR_RETURN(gguf::NumberArray<float> scores, metadata.GetFloats(kScores));
    data->scores = scores.ToVector();
    if (data->scores.empty())
      return absl::InvalidArgumentError(absl::StrCat(Sv(kScores), " is empty"));
  }
  if (metadata.Has(kTypes)) {
    TANDEM_ASSIGN_OR_RETURN(gguf::NumberArray<int32_t> types, metadata.GetInt32s(kTypes));
    data->types = types.ToVector();
    if (data->types.empty())
      return absl::InvalidArgumentError(absl::StrCat(Sv(kTypes), " is empty"));
  }
  if (metadata.Has(kSuppressed)) {
    TANDEM_ASSIGN_OR_RETURN(gguf::NumberArray<int32_t> ids, metadata.GetInt32s(kSuppressed));
    data->suppressed = ids.ToVector();
  }
  const TokenizerModel* model = FindTokenizerModel(data->model);
  if (model != nullptr && model->has_merges) {
    TANDEM_ASSIGN_OR_RETURN(gguf::StringArray merges, metadata.GetStrings(kMerges));
    data->merges = ToStrings(merges);
  }
  return absl::OkStatus();
}

absl::Status ReadIdsAndFlags(const gguf::Metadata& metadata, VocabularyData* data) {
  const std::pair<std::string_view, std::optional<uint64_t>*> ids[] = {
      {"tokenizer.ggml.bos_token_id", &data->bos},
      {"tokenizer.ggml.eos_token_id", &data->eos},
      {"tokenizer.ggml.eot_token_id", &data->eot},
      {"tokenizer.ggml.eom_token_id", &data->eom},
      {"tokenizer.ggml.unknown_token_id", &data->unknown},
      {"tokenizer.ggml.padding_token_id", &data->padding},
  };
  for (const auto& [key, id] : ids) {
    TANDEM_ASSIGN_OR_RETURN(std::optional<uint32_t> value, metadata.FindUint32(key));
    if (value.has_value()) *id = *value;
  }
  const std::pair<std::string_view, std::optional<bool>*> flags[] = {
      {"tokenizer.ggml.add_bos_token", &data->add_bos},
      {"tokenizer.ggml.add_eos_token", &data->add_eos},
      {"tokenizer.ggml.add_space_prefix", &data->add_space_prefix},
  };
  for (const auto& [key, flag] : flags) {
    TANDEM_ASSIGN_OR_RETURN(*flag, metadata.FindBool(key));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<VocabularyData> ReadVocabulary(const gguf::Metadata& metadata) {
  VocabularyData data;
  TANDEM_ASSIGN_OR_RETURN(data.model, metadata.GetString(kModel));
  TANDEM_ASSIGN_OR_RETURN(std::optional<std::string_view> pre, metadata.FindString(kPre));
  data.pre = pre.value_or("");
  TANDEM_RETURN_IF_ERROR(ReadLists(metadata, &data));
  TANDEM_RETURN_IF_ERROR(ReadIdsAndFlags(metadata, &data));
  TANDEM_ASSIGN_OR_RETURN(std::optional<std::string_view> chat_template,
                          metadata.FindString(kChatTemplate));
  data.chat_template = gguf::CleanText(chat_template.value_or(""));

  // Phi-3's tokenizer.json drops white space after special tokens. GGUF has no key for that; other
  // engines detect the model by name, and its files rely on that.
  TANDEM_ASSIGN_OR_RETURN(std::optional<std::string_view> name, metadata.FindString(kName));
  const std::string lower = absl::AsciiStrToLower(Sv(name.value_or("")));
  data.strip_after_special = absl::StrContains(lower, "phi-3") || absl::StrContains(lower, "phi3");
  return data;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizerFromGguf(const gguf::Metadata& metadata) {
  absl::StatusOr<VocabularyData> data = ReadVocabulary(metadata);
  if (!data.ok()) {
    // A missing key is INVALID_ARGUMENT: the file is unusable.
    return absl::InvalidArgumentError(data.status().message());
  }
  return MakeTokenizer(*std::move(data));
}

}  // namespace tandem::tokenizer
