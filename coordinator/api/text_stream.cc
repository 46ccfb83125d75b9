#include "coordinator/api/text_stream.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"

namespace tandem::coordinator {

absl::StatusOr<std::shared_ptr<TextStream>> TextStream::Create(
    const tokenizer::Tokenizer& model_tokenizer, const Sampling& sampling) {
  TANDEM_ASSIGN_OR_RETURN(tokenizer::StopMatcher matcher,
                          tokenizer::StopMatcher::Create(sampling.stop));
  return std::shared_ptr<TextStream>(
      new TextStream(model_tokenizer, std::move(matcher), sampling.end_ids));
}

TextStream::TextStream(const tokenizer::Tokenizer& model_tokenizer, tokenizer::StopMatcher matcher,
                       std::vector<TokenId> end_ids)
    : detokenizer_(model_tokenizer, {.skip_special = true, .at_start = false}),
      matcher_(std::move(matcher)),
      vocab_size_(model_tokenizer.vocab_size()),
      end_ids_(std::move(end_ids)) {}

void TextStream::OnReady(std::function<void()> wake) {
  std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

std::optional<TextDelta> TextStream::Take() {
  std::lock_guard lock(mutex_);
  if (!has_news_) return std::nullopt;
  has_news_ = false;
  return std::exchange(gathered_, TextDelta{});
}

bool TextStream::ended() const {
  std::lock_guard lock(mutex_);
  return ended_;
}

absl::Status TextStream::AppendText(TokenId token) {
  if (std::binary_search(end_ids_.begin(), end_ids_.end(), token)) return absl::OkStatus();
  if (token >= vocab_size_) return absl::OkStatus();  // the head is wider than the vocabulary
  TANDEM_ASSIGN_OR_RETURN(const std::string text, detokenizer_.Append(token));
  gathered_.text += matcher_.Append(text);
  return absl::OkStatus();
}

bool TextStream::OnToken(TokenId token, FinishReason reason, const Usage& usage) {
  bool go_on = true;
  {
    std::lock_guard lock(mutex_);
    gathered_.token_ids.push_back(token);
    gathered_.usage = usage;
    gathered_.status = AppendText(token);
    if (!matcher_.stopped() && reason != FinishReason::kNone) {
      gathered_.text += matcher_.Append(detokenizer_.Flush());
      gathered_.text += matcher_.Flush();
    }
    gathered_.reason = matcher_.stopped() ? FinishReason::kStop : reason;
    ended_ = gathered_.last();
    go_on = !ended_;
    has_news_ = true;
  }
  Wake();
  return go_on;
}

void TextStream::OnEnd(const absl::Status& status, FinishReason reason, const Usage& usage) {
  {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    gathered_.text += matcher_.Append(detokenizer_.Flush());
    gathered_.text += matcher_.Flush();
    gathered_.status = status;
    gathered_.reason = status.ok() ? reason : FinishReason::kNone;
    gathered_.usage = usage;
    ended_ = true;
    has_news_ = true;
  }
  Wake();
}

void TextStream::Wake() {
  std::function<void()> wake;
  {
    std::lock_guard lock(mutex_);
    wake = wake_;
  }
  if (wake) wake();
}

}  // namespace tandem::coordinator
