#include "coordinator/api/grpc/score_form.h"

#include <utility>

#include "common/base/status.h"
#include "coordinator/api/grpc/content_of.h"
#include "coordinator/api/grpc/wire.h"

namespace tandem::coordinator {
namespace {

void FillUsage(const Usage& usage, v1::Usage& out) {
  // The last token is scored, and not computed.
  out.set_prompt_tokens(static_cast<int32_t>(usage.prompt_tokens) + 1);
  out.set_cached_tokens(static_cast<int32_t>(usage.cached_tokens));
}

}  // namespace

ScoreParams ScoreParamsFromProto(const v1::ScoreRequest& proto) {
  ScoreParams params{.request_id = proto.request_id(),
                     .cache_salt = proto.cache_salt(),
                     .adapter = proto.adapter(),
                     .priority = proto.priority(),
                     .prompt = ContentOf(proto)};
  for (const v1::Continuation& one : proto.continuations()) {
    params.continuations.push_back(ContentOf(one));
  }
  if (proto.has_add_special_tokens()) params.encode.add_special = proto.add_special_tokens();
  if (proto.has_parse_special_tokens()) params.encode.parse_special = proto.parse_special_tokens();
  return params;
}

absl::StatusOr<CallPlan> ScoreForm::Parse(const grpc::ByteBuffer& request) {
  v1::ScoreRequest proto;
  TANDEM_RETURN_IF_ERROR(coordinator::Parse(request, proto));
  CallPlan plan{.request_id = proto.request_id(), .num_requests = proto.continuations_size()};
  // A text is tokenized alone and with each continuation.
  if (proto.has_text()) plan.num_passes += proto.continuations().size();
  plan.build = [params = ScoreParamsFromProto(proto)](const ServingModel& model) mutable {
    return BuildScoreRequests(std::move(params), model);
  };
  return plan;
}

void ScoreForm::AppendMessages(const std::string& id, uint32_t index, TextUpdate update,
                               std::deque<grpc::ByteBuffer>& messages) {
  if (totals_.size() <= index) totals_.resize(index + 1);
  Total& total = totals_[index];
  v1::ScoreResponse response;
  response.set_request_id(id);
  response.set_index(static_cast<int32_t>(index));
  for (const TokenLogprobs& one : update.prompt_logprobs) {
    if (one.token.rank == 0) continue;  // of a prompt's first token, which nobody asked for
    v1::TokenScore& score = *response.add_tokens();
    score.set_token_id(one.token.token);
    score.set_logprob(one.token.logprob);
    score.set_rank(static_cast<int32_t>(one.token.rank));
    score.set_is_greedy(one.top.front().token == one.token.token);
    total.logprob += one.token.logprob;
    total.is_greedy &= score.is_greedy();
  }
  if (update.last()) {
    const bool cancelled = update.reason == FinishReason::kCancelled;
    if (!cancelled) {
      response.set_logprob(total.logprob);
      response.set_is_greedy(total.is_greedy);
    }
    response.set_finish_reason(cancelled ? v1::FINISH_REASON_CANCELLED : v1::FINISH_REASON_LENGTH);
    FillUsage(update.usage, *response.mutable_usage());
  }
  messages.push_back(Serialize(response));
}

}  // namespace tandem::coordinator
