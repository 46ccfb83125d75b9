#include "coordinator/api/text_stream.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/status.h"

namespace tandem::coordinator {
namespace {

// Takes entries from the front while there is `room` for their values, and takes up the room.
std::vector<TokenLogprobs> TakeFront(std::vector<TokenLogprobs>& from, size_t& room) {
  auto end = from.begin();
  for (; end != from.end() && end->top.size() < room; ++end) room -= 1 + end->top.size();
  std::vector<TokenLogprobs> front(std::make_move_iterator(from.begin()),
                                   std::make_move_iterator(end));
  from.erase(from.begin(), end);
  return front;
}

}  // namespace

absl::StatusOr<std::shared_ptr<TextStream>> TextStream::Create(
    const tokenizer::Tokenizer& model_tokenizer, const Sampling& sampling) {
  TANDEM_ASSIGN_OR_RETURN(tokenizer::StopMatcher matcher,
                          tokenizer::StopMatcher::Create(sampling.stop));
  std::shared_ptr<TextStream> stream(
      new TextStream(model_tokenizer, std::move(matcher), sampling.end_ids));
  if (sampling.prompt_logprobs.has_value()) stream->gathered_.prompt_logprobs.emplace_back();
  return stream;
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
  size_t room = kMaxLogprobsPerTake;
  TextDelta delta;
  delta.prompt_logprobs = TakeFront(gathered_.prompt_logprobs, room);
  if (!gathered_.prompt_logprobs.empty()) return delta;
  std::vector<TokenLogprobs> logprobs = TakeFront(gathered_.logprobs, room);
  if (gathered_.logprobs.empty()) {
    has_news_ = false;
    std::vector<TokenLogprobs> prompt_logprobs = std::move(delta.prompt_logprobs);
    delta = std::exchange(gathered_, TextDelta{});
    delta.prompt_logprobs = std::move(prompt_logprobs);
    delta.logprobs = std::move(logprobs);
    return delta;
  }
  // The first tokens alone; text, and how it ended, go with the last ones.
  const auto split = gathered_.token_ids.begin() + static_cast<ptrdiff_t>(logprobs.size());
  delta.token_ids.assign(gathered_.token_ids.begin(), split);
  gathered_.token_ids.erase(gathered_.token_ids.begin(), split);
  delta.logprobs = std::move(logprobs);
  return delta;
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

// They wait for the first token.
void TextStream::OnPromptLogprobs(std::vector<TokenLogprobs> logprobs) {
  std::lock_guard lock(mutex_);
  std::ranges::move(logprobs, std::back_inserter(gathered_.prompt_logprobs));
}

bool TextStream::OnToken(const GeneratedToken& token, FinishReason reason, const Usage& usage) {
  bool go_on = true;
  {
    std::lock_guard lock(mutex_);
    gathered_.token_ids.push_back(token.id);
    if (token.logprobs.has_value()) gathered_.logprobs.push_back(*token.logprobs);
    gathered_.usage = usage;
    gathered_.status = AppendText(token.id);
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
