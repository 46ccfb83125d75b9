#include "coordinator/api/text_stream.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"

namespace tandem::coordinator {

absl::StatusOr<TextStream> TextStream::Create(const tokenizer::Tokenizer& model_tokenizer,
                                              const Sampling& sampling, bool skip_special) {
  TANDEM_ASSIGN_OR_RETURN(tokenizer::StopMatcher matcher,
                          tokenizer::StopMatcher::Create(sampling.stop, sampling.include_stop));
  return TextStream(model_tokenizer, std::move(matcher), sampling, skip_special);
}

TextStream::TextStream(const tokenizer::Tokenizer& model_tokenizer, tokenizer::StopMatcher matcher,
                       const Sampling& sampling, bool skip_special)
    : detokenizer_(model_tokenizer, {.skip_special = skip_special, .at_start = false}),
      matcher_(std::move(matcher)),
      vocab_size_(model_tokenizer.vocab_size()),
      end_ids_(sampling.end_ids),
      stops_(sampling.stop),
      owes_first_logprobs_(sampling.prompt_logprobs.has_value()),
      min_tokens_(sampling.min_tokens) {}

absl::Status TextStream::AppendText(TokenId token, std::string& text) {
  ++num_tokens_;
  if (std::binary_search(end_ids_.begin(), end_ids_.end(), token)) return absl::OkStatus();
  if (token >= vocab_size_) return absl::OkStatus();  // the head is wider than the vocabulary
  TANDEM_ASSIGN_OR_RETURN(const std::string piece, detokenizer_.Append(token));
  text += matcher_.Append(piece, /*may_stop=*/num_tokens_ >= min_tokens_);
  return absl::OkStatus();
}

TextUpdate TextStream::Convert(StreamUpdate update) {
  TextUpdate out;
  if (ended_) return out;
  static_cast<StreamUpdate&>(out) = std::move(update);
  if (std::exchange(owes_first_logprobs_, false)) {
    out.prompt_logprobs.insert(out.prompt_logprobs.begin(), TokenLogprobs{});
  }
  const size_t num_tokens = out.tokens.size();
  size_t taken = 0;
  while (taken < num_tokens && !matcher_.stopped()) {
    if (absl::Status status = AppendText(out.tokens[taken++], out.text); !status.ok()) {
      out.status = std::move(status);
      stopped_ = true;
      break;
    }
  }
  if (out.last() && !matcher_.stopped()) {
    out.text += matcher_.Append(detokenizer_.Flush(), num_tokens_ >= min_tokens_);
    out.text += matcher_.Flush();
  }
  if (num_tokens > 0 && matcher_.stopped()) {
    out.reason = FinishReason::kStop;
    out.status = absl::OkStatus();  // of what was drawn after the end
    stopped_ = true;
  }
  if (!out.status.ok()) out.reason = FinishReason::kNone;
  out.tokens.resize(taken);
  if (out.reason == FinishReason::kStop) out.matched_stop = MatchedStop(out.tokens);
  out.logprobs.resize(std::min(taken, out.logprobs.size()));
  const auto num_dropped = static_cast<uint32_t>(num_tokens - taken);
  out.usage.completion_tokens -= num_dropped;
  // A step's last token is drawn besides those that it accepts.
  const uint32_t dropped_drafts = num_dropped > 0 ? num_dropped - 1 : 0;
  out.usage.accepted_draft_tokens -= std::min(out.usage.accepted_draft_tokens, dropped_drafts);
  ended_ = out.last();
  return out;
}

TextUpdate::Matched TextStream::MatchedStop(const std::vector<TokenId>& tokens) const {
  if (matcher_.stopped()) return stops_[static_cast<size_t>(matcher_.matched())];
  if (tokens.empty()) return {};
  return tokens.back();
}

}  // namespace tandem::coordinator
