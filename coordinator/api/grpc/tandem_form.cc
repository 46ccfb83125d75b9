#include "coordinator/api/grpc/tandem_form.h"

#include <utility>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "coordinator/api/grpc/params_from_proto.h"
#include "coordinator/api/grpc/wire.h"
#include "proto/tandem/v1/generation.pb.h"

namespace tandem::coordinator {
namespace {

v1::FinishReason ToProto(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return v1::FINISH_REASON_UNSPECIFIED;
    case FinishReason::kStop:
      return v1::FINISH_REASON_STOP;
    case FinishReason::kLength:
      return v1::FINISH_REASON_LENGTH;
    case FinishReason::kCancelled:
      return v1::FINISH_REASON_CANCELLED;
  }
  return v1::FINISH_REASON_UNSPECIFIED;
}

void FillLogprobs(const std::vector<TokenLogprobs>& from,
                  google::protobuf::RepeatedPtrField<v1::TokenLogprobs>& out) {
  for (const TokenLogprobs& one : from) {
    v1::TokenLogprobs& proto = *out.Add();
    proto.set_token_id(one.token.token);
    proto.set_logprob(one.token.logprob);
    proto.set_rank(static_cast<int32_t>(one.token.rank));
    for (const step::TokenLogprob& top : one.top) {
      v1::TopLogprob& top_proto = *proto.add_top();
      top_proto.set_token_id(top.token);
      top_proto.set_logprob(top.logprob);
      top_proto.set_rank(static_cast<int32_t>(top.rank));
    }
  }
}

void FillMatchedStop(const TextUpdate::Matched& matched, v1::GenerateResponse& out) {
  if (const auto* text = std::get_if<std::string>(&matched)) out.set_matched_stop_string(*text);
  if (const auto* id = std::get_if<TokenId>(&matched)) out.set_matched_stop_token_id(*id);
}

void FillEnd(const TextUpdate& update, v1::GenerateResponse& out) {
  out.set_finish_reason(ToProto(update.reason));
  FillMatchedStop(update.matched_stop, out);
  v1::Usage& usage = *out.mutable_usage();
  usage.set_prompt_tokens(static_cast<int32_t>(update.usage.prompt_tokens));
  usage.set_completion_tokens(static_cast<int32_t>(update.usage.completion_tokens));
  usage.set_cached_tokens(static_cast<int32_t>(update.usage.cached_tokens));
  usage.set_draft_tokens(static_cast<int32_t>(update.usage.draft_tokens));
  usage.set_accepted_draft_tokens(static_cast<int32_t>(update.usage.accepted_draft_tokens));
}

}  // namespace

absl::StatusOr<CallPlan> TandemForm::Parse(const grpc::ByteBuffer& request) {
  v1::GenerateRequest proto;
  TANDEM_RETURN_IF_ERROR(coordinator::Parse(request, proto));
  return CallPlan::Of(ParamsFromProto(proto));
}

void TandemForm::AppendMessages(const std::string& id, uint32_t index, TextUpdate update,
                                std::deque<grpc::ByteBuffer>& messages) {
  v1::GenerateResponse response;
  response.set_request_id(id);
  response.set_index(static_cast<int32_t>(index));
  response.set_text(std::move(update.text));
  response.mutable_token_ids()->Add(update.tokens.begin(), update.tokens.end());
  FillLogprobs(update.logprobs, *response.mutable_logprobs());
  FillLogprobs(update.prompt_logprobs, *response.mutable_prompt_logprobs());
  if (update.last()) FillEnd(update, response);
  messages.push_back(Serialize(response));
}

}  // namespace tandem::coordinator
