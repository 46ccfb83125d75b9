#include "coordinator/api/score_request.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "coordinator/api/request_builder.h"

namespace tandem::coordinator {
namespace {

using Ids = std::vector<TokenId>;

absl::Status CheckPrompt(const Ids& prompt, const ServingModel& model) {
  if (prompt.empty()) {
    return absl::InvalidArgumentError(
        "the prompt is empty: the first token of a continuation needs one before it, such as BOS");
  }
  // Checked again with each continuation: before it is tokenized with each of them.
  if (prompt.size() <= model.max_model_len) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("prompt of ", prompt.size(),
                                                 " tokens exceeds the context of ",
                                                 model.max_model_len, " tokens"));
}

// Makes the requests of one call.
class Maker {
 public:
  Maker(ScoreParams params, const ServingModel& model)
      : params_(std::move(params)), tokenizer_(*model.tokenizer), model_(model) {}

  absl::StatusOr<std::vector<Request>> Make() {
    const size_t count = params_.continuations.size();
    if (count < 1 || count > static_cast<size_t>(kMaxChoices)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the request has ", count, " continuations, it must have 1 to ", kMaxChoices));
    }
    TANDEM_ASSIGN_OR_RETURN(
        Request base, NamedRequest(std::move(params_.request_id), std::move(params_.cache_salt),
                                   params_.priority));
    TANDEM_RETURN_IF_ERROR(SetAdapter(params_.adapter, model_, base));
    TANDEM_ASSIGN_OR_RETURN(prompt_, Encode(params_.prompt));
    TANDEM_RETURN_IF_ERROR(CheckPrompt(prompt_, model_));
    std::vector<Request> requests;
    for (uint32_t index = 0; index < count; ++index) {
      Request& request = requests.emplace_back(base);
      request.id = NumberedId(base.id, index);
      // The likeliest token at each place says whether the continuation's is it.
      request.sampling.prompt_logprobs = 1;
      TANDEM_RETURN_IF_ERROR(Annotate(Fill(params_.continuations[index], request),
                                      absl::StrCat("continuations[", index, "]")));
    }
    return requests;
  }

 private:
  absl::StatusOr<Ids> Encode(const TextOrIds& text) const {
    TANDEM_ASSIGN_OR_RETURN(Ids ids, IdsOf(text, tokenizer_, params_.encode));
    const tokenizer::SpecialTokens& special = tokenizer_.special_tokens();
    const bool adds_eos = std::holds_alternative<std::string>(text) && params_.encode.add_special &&
                          special.add_eos && !ids.empty() && ids.back() == special.eos;
    if (adds_eos) ids.pop_back();
    return ids;
  }

  // Prompt and continuation, and how many of them are the prompt's.
  absl::StatusOr<std::pair<Ids, size_t>> Whole(const TextOrIds& continuation) const {
    if (std::holds_alternative<std::monostate>(continuation)) {
      return absl::InvalidArgumentError("set text or token_ids");
    }
    const auto* before = std::get_if<std::string>(&params_.prompt);
    const auto* after = std::get_if<std::string>(&continuation);
    if (before != nullptr && after != nullptr) {
      TANDEM_ASSIGN_OR_RETURN(Ids whole, Encode(*before + *after));
      const auto shared = std::ranges::mismatch(prompt_, whole).in1 - prompt_.begin();
      return std::pair(std::move(whole), static_cast<size_t>(shared));
    }
    tokenizer::EncodeOptions options = params_.encode;
    options.add_special = false;
    TANDEM_ASSIGN_OR_RETURN(const Ids tail, IdsOf(continuation, tokenizer_, options));
    Ids whole = prompt_;
    whole.insert(whole.end(), tail.begin(), tail.end());
    return std::pair(std::move(whole), prompt_.size());
  }

  absl::Status Fill(const TextOrIds& continuation, Request& request) {
    TANDEM_ASSIGN_OR_RETURN(auto parts, Whole(continuation));
    auto& [whole, begin] = parts;
    if (begin == whole.size()) return absl::InvalidArgumentError("it has no tokens");
    if (begin == 0) {
      return absl::InvalidArgumentError(
          "its first token is also the prompt's: nothing is before it");
    }
    num_scored_ += whole.size() - begin;
    if (num_scored_ > kMaxScoredTokens) {
      return absl::InvalidArgumentError(
          absl::StrCat("the continuations have more than ", kMaxScoredTokens, " tokens"));
    }
    request.targets.assign(whole.begin() + static_cast<std::ptrdiff_t>(begin), whole.end());
    whole.pop_back();
    request.prompt = std::move(whole);
    return absl::OkStatus();
  }

  ScoreParams params_;
  const tokenizer::Tokenizer& tokenizer_;
  const ServingModel& model_;
  Ids prompt_;
  size_t num_scored_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Request>> BuildScoreRequests(ScoreParams params,
                                                        const ServingModel& model) {
  return Maker(std::move(params), model).Make();
}

}  // namespace tandem::coordinator
