#include "coordinator/api/token_rules.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/step/limits.h"

namespace tandem::coordinator {
namespace {

// Every banned word gives up to two sequences of ids.
static_assert(2 * kMaxBadWords + tokenizer::kMaxSuppressed <= step::kMaxBannedSequences);

absl::Status CheckTexts(const char* field, const std::vector<std::string>& texts, size_t most,
                        size_t most_bytes) {
  if (texts.size() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.", field, " has ", texts.size(), " strings, at most ", most));
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].empty() && texts[i].size() <= most_bytes) continue;
    return absl::InvalidArgumentError(absl::StrCat("sampling.", field, "[", i, "] has ",
                                                   texts[i].size(), " bytes, it must have 1 to ",
                                                   most_bytes));
  }
  return absl::OkStatus();
}

absl::Status FillLogitBias(const GenerateParams& params, Sampling& out) {
  if (params.logit_bias.size() > step::kMaxLogitBiases) {
    return absl::InvalidArgumentError(absl::StrCat("sampling.logit_bias has ",
                                                   params.logit_bias.size(), " entries, at most ",
                                                   step::kMaxLogitBiases));
  }
  out.logit_bias = params.logit_bias;
  std::ranges::sort(out.logit_bias);
  return absl::OkStatus();
}

// Adds the ids of a text, unless the head lacks one of them: then it is never generated.
absl::StatusOr<std::vector<TokenId>> Ban(const std::string& text, const ServingModel& model,
                                         Sampling& out) {
  TANDEM_ASSIGN_OR_RETURN(std::vector<TokenId> ids,
                          model.tokenizer->Encode(text, {.add_special = false}));
  const auto is_known = [&](TokenId id) { return static_cast<uint32_t>(id) < model.vocab_size; };
  if (!ids.empty() && std::ranges::all_of(ids, is_known)) out.banned_sequences.push_back(ids);
  return ids;
}

// The word as it begins a text, and after a space if that changes its first id only: as vLLM does
// (SamplingParams.update_from_tokenizer).
absl::Status FillBadWords(const GenerateParams& params, const ServingModel& model, Sampling& out) {
  TANDEM_RETURN_IF_ERROR(CheckTexts("bad_words", params.bad_words, kMaxBadWords, kMaxBadWordBytes));
  for (size_t i = 0; i < params.bad_words.size(); ++i) {
    const std::string word(absl::StripLeadingAsciiWhitespace(params.bad_words[i]));
    if (word.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("sampling.bad_words[", i, "] holds spaces only"));
    }
    TANDEM_ASSIGN_OR_RETURN(const std::vector<TokenId> plain, Ban(word, model, out));
    const size_t num_sequences = out.banned_sequences.size();
    TANDEM_ASSIGN_OR_RETURN(const std::vector<TokenId> spaced, Ban(" " + word, model, out));
    if (spaced.size() == plain.size() && spaced.front() != plain.front()) continue;
    out.banned_sequences.resize(num_sequences);
  }
  return absl::OkStatus();
}

// A form's tokens are without them.
void BanSuppressed(const ServingModel& model, Sampling& out) {
  for (const TokenId id : model.tokenizer->suppressed_ids()) {
    if (static_cast<uint32_t>(id) < model.vocab_size) out.banned_sequences.push_back({id});
  }
}

// Ids whose text, a control token's name, holds a breaker.
absl::Status FillBreakers(const GenerateParams& params, const ServingModel& model, Sampling& out) {
  TANDEM_RETURN_IF_ERROR(CheckTexts("dry_sequence_breakers", params.dry_sequence_breakers,
                                    kMaxBreakers, kMaxBreakerBytes));
  if (!(params.penalties.dry_multiplier > 0)) return absl::OkStatus();
  std::vector<std::string> breakers = params.dry_sequence_breakers;
  if (breakers.empty()) breakers = {"\n", ":", "\"", "*"};
  if (breakers == std::vector<std::string>{"none"}) return absl::OkStatus();
  const auto most =
      static_cast<TokenId>(std::min<int64_t>(model.tokenizer->vocab_size(), model.vocab_size));
  for (TokenId id = 0; id < most; ++id) {
    TANDEM_ASSIGN_OR_RETURN(const std::string_view text, model.tokenizer->TokenBytes(id));
    const auto is_in = [&](const std::string& breaker) {
      return text.find(breaker) != std::string_view::npos;
    };
    if (std::ranges::any_of(breakers, is_in)) out.dry_breakers.push_back(id);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FillTokenRules(const GenerateParams& params, const ServingModel& model,
                            Sampling& out) {
  TANDEM_RETURN_IF_ERROR(FillLogitBias(params, out));
  TANDEM_RETURN_IF_ERROR(FillBadWords(params, model, out));
  if (params.constraint.kind == Constraint::Kind::kNone) BanSuppressed(model, out);
  return FillBreakers(params, model, out);
}

}  // namespace tandem::coordinator
