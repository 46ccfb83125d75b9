#include "coordinator/api/text_update.h"

#include <iterator>
#include <utility>
#include <vector>

namespace tandem::coordinator {
namespace {

template <typename List>
void MoveTo(List& all, List& more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Takes entries from the front while there is `room` for their values, and reduces it.
std::vector<TokenLogprobs> TakeFront(std::vector<TokenLogprobs>& from, size_t& room) {
  auto end = from.begin();
  for (; end != from.end() && end->top.size() < room; ++end) room -= 1 + end->top.size();
  std::vector<TokenLogprobs> front(std::make_move_iterator(from.begin()),
                                   std::make_move_iterator(end));
  from.erase(from.begin(), end);
  return front;
}

}  // namespace

size_t TextUpdate::GeneratedBytes() const {
  size_t bytes = text.size() + tokens.size() * sizeof(TokenId);
  for (const TokenLogprobs& one : logprobs) {
    bytes += (1 + one.top.size()) * sizeof(step::TokenLogprob);
  }
  return bytes;
}

void TextUpdate::Append(TextUpdate next) {
  if (last()) return;
  text += next.text;
  MoveTo(prompt_logprobs, next.prompt_logprobs);
  MoveTo(tokens, next.tokens);
  MoveTo(logprobs, next.logprobs);
  MoveTo(embedding, next.embedding);
  reason = next.reason;
  matched_stop = std::move(next.matched_stop);
  status = std::move(next.status);
  usage = next.usage;
}

std::optional<TextUpdate> TextUpdate::Take() {
  if (tokens.empty() && !last()) return std::nullopt;
  size_t room = kMaxLogprobsPerTake;
  TextUpdate front;
  front.usage = usage;
  front.prompt_logprobs = TakeFront(prompt_logprobs, room);
  if (!prompt_logprobs.empty()) return front;
  front.logprobs = TakeFront(logprobs, room);
  if (logprobs.empty()) {
    logprobs = std::move(front.logprobs);
    prompt_logprobs = std::move(front.prompt_logprobs);
    TextUpdate all = std::exchange(*this, TextUpdate{});
    // An error ends the call at once: what came before it goes first.
    if (!all.tokens.empty() || !all.text.empty())
      status = std::exchange(all.status, absl::OkStatus());
    return all;
  }
  // Only the first tokens; text and finish reason go with the last ones.
  const auto split = tokens.begin() + static_cast<ptrdiff_t>(front.logprobs.size());
  front.tokens.assign(tokens.begin(), split);
  tokens.erase(tokens.begin(), split);
  return front;
}

}  // namespace tandem::coordinator
