#include "tests/sim/client.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/sim/violation.h"

namespace tandem::sim {

using coordinator::FinishReason;
using coordinator::StreamUpdate;

Client::Client(Expected expected, coordinator::Request request, size_t stop_after, bool is_poison,
               Circumstances& circumstances, const Clock& clock)
    : expected_(std::move(expected)),
      request_(std::move(request)),
      stop_after_(stop_after),
      is_poison_(is_poison),
      circumstances_(circumstances),
      clock_(clock),
      losses_before_(circumstances.num_losses) {}

void Client::Require(bool holds, const char* what) const {
  if (!holds) Violation(absl::StrCat("request ", request_.id, ": ", what));
}

coordinator::Taken Client::OnUpdate(StreamUpdate update) {
  if (stopped_) return {.stopped = true};  // what was drawn before the engine knew
  Require(!ended_, "an update after the end");
  const bool ends_as_told =
      update.reason == FinishReason::kCancelled || absl::IsDeadlineExceeded(update.status);
  if (cancelled() && !ends_as_told) {
    Require(++updates_after_cancel_ <= 1, "it continues after Cancel");
  }
  CheckTokens(update);
  CheckUsage(update.usage);
  if (update.last()) CheckEnd(update);
  ended_ = update.last();
  if (!ended_ && num_tokens_ >= stop_after_) ended_ = stopped_ = true;
  return {.stopped = stopped_};
}

void Client::CheckTokens(const StreamUpdate& update) {
  Require(update.prompt_logprobs.empty() || num_tokens_ == 0, "the prompt does not come first");
  for (const auto& logprobs : update.prompt_logprobs) {
    Require(num_prompt_logprobs_ < expected_.prompt_logprobs.size(), "too many prompt logprobs");
    Require(logprobs == expected_.prompt_logprobs[num_prompt_logprobs_++],
            "a wrong log-probability of the prompt");
  }
  Require(update.logprobs.size() == (request_.sampling.logprobs ? update.tokens.size() : 0),
          "log-probabilities do not go with the tokens");
  for (size_t i = 0; i < update.tokens.size(); ++i, ++num_tokens_) {
    Require(num_prompt_logprobs_ == expected_.prompt_logprobs.size(),
            "prompt logprobs are missing");
    Require(num_tokens_ < expected_.tokens.size(), "tokens after the last");
    Require(update.tokens[i] == expected_.tokens[num_tokens_], "a wrong token");
    if (request_.sampling.logprobs) {
      Require(update.logprobs[i] == expected_.logprobs[num_tokens_], "a wrong log-probability");
    }
    ++circumstances_.num_tokens;
    circumstances_.trace =
        coordinator::SimulatedMix(circumstances_.trace, static_cast<uint64_t>(update.tokens[i]));
  }
}

void Client::CheckUsage(const coordinator::Usage& usage) {
  Require(usage.prompt_tokens == request_.prompt.size(), "usage: prompt_tokens");
  Require(usage.completion_tokens == num_tokens_, "usage: completion_tokens");
  Require(usage.accepted_draft_tokens <= std::min(usage.draft_tokens, usage.completion_tokens),
          "usage: accepted_draft_tokens");
  Require(usage.cached_tokens < usage.prompt_tokens, "usage: cached_tokens exceed the prompt");
  const bool has_result = num_tokens_ + num_prompt_logprobs_ > 0;
  if (has_result && !cached_tokens_.has_value()) cached_tokens_ = usage.cached_tokens;
  Require(!cached_tokens_.has_value() || *cached_tokens_ == usage.cached_tokens,
          "usage: cached_tokens changed");
}

void Client::CheckEnd(const StreamUpdate& update) const {
  if (!update.status.ok()) return CheckFailure(update.status);
  if (update.reason == FinishReason::kCancelled) {
    return Require(cancelled() || circumstances_.stopping, "cancelled by nothing");
  }
  Require(!is_poison_, "a worker has survived it");
  Require(num_tokens_ == expected_.tokens.size(), "it ends too early");
  Require(num_prompt_logprobs_ == expected_.prompt_logprobs.size(),
          "it ends without all log-probabilities");
  Require(update.embedding == expected_.embedding, "a wrong embedding");
  Require(update.reason == expected_.reason, "it ends with another reason");
}

void Client::CheckFailure(const absl::Status& status) const {
  if (absl::IsDeadlineExceeded(status)) {
    return Require(clock_.Now() >= request_.deadline, "it ends before its deadline");
  }
  if (absl::IsUnavailable(status)) {
    return Require(circumstances_.lost, "it failed although the workers are back");
  }
  Require(absl::IsInternal(status), "it failed with another code");
  const std::string message(status.message());
  if (message.find("at last alone") == std::string::npos) {
    return Require(circumstances_.num_not_finite-- > 0, "it failed without a cause");
  }
  // Two strikes, and one alone: chance may do that to any request, if there were that many losses.
  Require(circumstances_.num_losses >= losses_before_ + 3, "it is blamed for too few losses");
}

void Client::Flush() {
  if (!ended_) return;
  Require(!flushed_ || stopped_, "it ends twice");
  flushed_ = true;
}

void Client::NoteCancelled(TimePoint now) { cancelled_at_ = std::min(cancelled_at_, now); }

}  // namespace tandem::sim
