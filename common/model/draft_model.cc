#include "common/model/draft_model.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/gguf/quote.h"

namespace tandem::model {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";

template <typename... Args>
absl::Status Refused(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat("as a draft model: ", args...));
}

absl::Status CheckVocabulary(const gguf::File& file, const gguf::File& draft_file) {
  TANDEM_ASSIGN_OR_RETURN(const gguf::StringArray tokens, file.metadata().GetStrings(kTokens));
  TANDEM_ASSIGN_OR_RETURN(const gguf::StringArray drafted,
                          draft_file.metadata().GetStrings(kTokens));
  if (tokens.size() != drafted.size()) {
    return Refused("its vocabulary has ", drafted.size(), " tokens, the model's ", tokens.size());
  }
  auto other = drafted.begin();
  size_t id = 0;
  for (const std::string_view token : tokens) {
    if (token != *other) {
      return Refused("its token ", id, " is ", gguf::Quoted(*other), ", the model's ",
                     gguf::Quoted(token));
    }
    ++other;
    ++id;
  }
  return absl::OkStatus();
}

}  // namespace

size_t FullAttentionGroup(const ModelSpec& spec) {
  return static_cast<size_t>(std::ranges::find(spec.kv_groups, 0u, &KvGroupSpec::window_tokens) -
                             spec.kv_groups.begin());
}

absl::Status CheckDraftModel(const gguf::File& file, const ModelSpec& spec,
                             const gguf::File& draft_file, const ModelSpec& draft) {
  if (draft.vocab_size != spec.vocab_size) {
    return Refused("its vocabulary has ", draft.vocab_size, " rows, the model's ", spec.vocab_size);
  }
  TANDEM_RETURN_IF_ERROR(CheckVocabulary(file, draft_file));
  if (draft.delta_net.has_value()) {
    return Refused("it has recurrent layers, needed full attention in all of them");
  }
  if (draft.kv_groups.size() != 1 || FullAttentionGroup(draft) != 0) {
    return Refused("it has layers with sliding windows, needed full attention in all of them");
  }
  if (FullAttentionGroup(spec) == spec.kv_groups.size()) {
    return Refused("the model has no layer with full attention, whose blocks it would share");
  }
  return absl::OkStatus();
}

absl::Status CheckDraftContext(const ModelSpec& draft, uint32_t max_model_len) {
  if (max_model_len <= draft.context_length) return absl::OkStatus();
  return Refused("its context length is ", draft.context_length, ", needed --max-model-len ",
                 max_model_len);
}

}  // namespace tandem::model
