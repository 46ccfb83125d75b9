#include "coordinator/api/grpc/embed_form.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/api/grpc/content_of.h"
#include "coordinator/api/grpc/wire.h"

namespace tandem::coordinator {
namespace {

absl::StatusOr<std::optional<Pooling>> PoolingFromProto(v1::Pooling pooling) {
  switch (pooling) {
    case v1::POOLING_UNSPECIFIED:
      return std::nullopt;
    case v1::POOLING_MEAN:
      return Pooling::kMean;
    case v1::POOLING_CLS:
      return Pooling::kCls;
    case v1::POOLING_LAST:
      return Pooling::kLast;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("pooling is ", static_cast<int>(pooling), ", it must be from 0 to 3"));
  }
}

}  // namespace

absl::StatusOr<EmbedParams> EmbedParamsFromProto(const v1::EmbedRequest& proto) {
  EmbedParams params{.request_id = proto.request_id(),
                     .cache_salt = proto.cache_salt(),
                     .adapter = proto.adapter(),
                     .priority = proto.priority()};
  TANDEM_ASSIGN_OR_RETURN(params.pooling, PoolingFromProto(proto.pooling()));
  for (const v1::EmbedInput& one : proto.inputs()) params.inputs.push_back(ContentOf(one));
  if (proto.has_add_special_tokens()) params.encode.add_special = proto.add_special_tokens();
  if (proto.has_parse_special_tokens()) params.encode.parse_special = proto.parse_special_tokens();
  if (proto.has_dimensions()) params.dimensions = proto.dimensions();
  return params;
}

absl::StatusOr<CallPlan> EmbedForm::Parse(const grpc::ByteBuffer& request) {
  v1::EmbedRequest proto;
  TANDEM_RETURN_IF_ERROR(coordinator::Parse(request, proto));
  TANDEM_ASSIGN_OR_RETURN(EmbedParams params, EmbedParamsFromProto(proto));
  dimensions_ = params.dimensions;
  if (proto.has_normalize()) normalize_ = proto.normalize();
  CallPlan plan{.request_id = proto.request_id(), .num_requests = proto.inputs_size()};
  plan.build = [params = std::move(params)](const ServingModel& model) mutable {
    return BuildEmbedRequests(std::move(params), model);
  };
  return plan;
}

void EmbedForm::AppendMessages(const std::string& id, uint32_t index, TextUpdate update,
                               std::deque<grpc::ByteBuffer>& messages) {
  if (!update.last()) return;
  FinishEmbedding(dimensions_, normalize_, update.embedding);
  v1::EmbedResponse response;
  response.set_request_id(id);
  response.set_index(static_cast<int32_t>(index));
  response.mutable_embedding()->Add(update.embedding.begin(), update.embedding.end());
  response.set_finish_reason(update.reason == FinishReason::kCancelled ? v1::FINISH_REASON_CANCELLED
                                                                       : v1::FINISH_REASON_LENGTH);
  response.mutable_usage()->set_prompt_tokens(static_cast<int32_t>(update.usage.prompt_tokens));
  response.mutable_usage()->set_cached_tokens(static_cast<int32_t>(update.usage.cached_tokens));
  messages.push_back(Serialize(response));
}

}  // namespace tandem::coordinator
