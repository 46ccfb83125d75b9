#include "coordinator/api/grpc/generate_form.h"

#include <utility>

#include "common/base/status.h"
#include "coordinator/api/request_builder.h"

namespace tandem::coordinator {

CallPlan CallPlan::Of(GenerateParams params) {
  CallPlan plan{.request_id = params.request_id,
                .num_requests = params.n,
                .skip_special_tokens = params.skip_special_tokens};
  plan.build = [params = std::move(params)](
                   const ServingModel& model) mutable -> absl::StatusOr<std::vector<Request>> {
    const auto count = static_cast<uint32_t>(params.n);
    TANDEM_ASSIGN_OR_RETURN(Request first, BuildRequest(std::move(params), model));
    // The engine refuses a longer prompt: copies of it could be gigabytes.
    const bool fits = first.prompt.size() <= model.max_model_len;
    std::vector<Request> requests;
    requests.push_back(std::move(first));
    for (uint32_t index = 1; fits && index < count; ++index) {
      requests.push_back(Continuation(requests.front(), index));
    }
    return requests;
  };
  return plan;
}

}  // namespace tandem::coordinator
