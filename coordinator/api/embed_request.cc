#include "coordinator/api/embed_request.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "coordinator/api/request_builder.h"

namespace tandem::coordinator {
namespace {

absl::Status CheckSizes(const EmbedParams& params, const ServingModel& model) {
  const size_t count = params.inputs.size();
  if (count < 1 || count > static_cast<size_t>(kMaxChoices)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request has ", count, " inputs, it must have 1 to ", kMaxChoices));
  }
  const int64_t dimensions = params.dimensions.value_or(1);
  if (dimensions >= 1 && dimensions <= model.hidden_size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("dimensions is ", dimensions, ", it must be from 1 to ", model.hidden_size));
}

absl::StatusOr<std::vector<TokenId>> Tokens(TextOrIds input,
                                            const tokenizer::EncodeOptions& options,
                                            const ServingModel& model) {
  if (std::holds_alternative<std::monostate>(input)) {
    return absl::InvalidArgumentError("set text or token_ids");
  }
  TANDEM_ASSIGN_OR_RETURN(std::vector<TokenId> ids,
                          IdsOf(std::move(input), *model.tokenizer, options));
  if (ids.empty()) return absl::InvalidArgumentError("it has no tokens");
  if (ids.size() > model.max_model_len) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its ", ids.size(), " tokens exceed the context of ", model.max_model_len, " tokens"));
  }
  return ids;
}

}  // namespace

absl::StatusOr<std::vector<Request>> BuildEmbedRequests(EmbedParams params,
                                                        const ServingModel& model) {
  TANDEM_RETURN_IF_ERROR(CheckSizes(params, model));
  TANDEM_ASSIGN_OR_RETURN(
      Request base,
      NamedRequest(std::move(params.request_id), std::move(params.cache_salt), params.priority));
  TANDEM_RETURN_IF_ERROR(SetAdapter(params.adapter, model, base));
  base.pooling = params.pooling.value_or(model.pooling);
  std::vector<Request> requests;
  for (uint32_t index = 0; index < params.inputs.size(); ++index) {
    Request& request = requests.emplace_back(base);
    request.id = NumberedId(base.id, index);
    auto ids = Tokens(std::move(params.inputs[index]), params.encode, model);
    if (!ids.ok()) return Annotate(ids.status(), absl::StrCat("inputs[", index, "]"));
    request.prompt = *std::move(ids);
  }
  return requests;
}

void FinishEmbedding(std::optional<int32_t> dimensions, bool normalize,
                     std::vector<float>& embedding) {
  const size_t size = embedding.size();
  embedding.resize(std::min(static_cast<size_t>(dimensions.value_or(INT32_MAX)), size));
  if (!normalize) return;
  double squares = 0;
  for (const float value : embedding) squares += double{value} * value;
  if (squares == 0) return;
  for (float& value : embedding) value = static_cast<float>(value / std::sqrt(squares));
}

}  // namespace tandem::coordinator
