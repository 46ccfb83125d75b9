// GenerateForm: how a call that makes requests to the engine looks on the wire: an API's Generate,
// or Score. One per call; used by one thread at a time.
#ifndef TANDEM_COORDINATOR_API_GRPC_GENERATE_FORM_H_
#define TANDEM_COORDINATOR_API_GRPC_GENERATE_FORM_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "coordinator/api/generate_params.h"
#include "coordinator/api/serving_model.h"
#include "coordinator/api/text_update.h"
#include "coordinator/engine/request.h"

namespace tandem::coordinator {

// What a call asks for.
struct CallPlan {
  std::string request_id{};  // of the call's first request; empty: random
  int32_t num_requests = 1;  // as the client says; unchecked
  size_t num_passes = 1;     // of the tokenizer over the request's texts, at most
  bool skip_special_tokens = true;
  // Makes the requests, on a thread of the tokenizer's pool; once. INVALID_ARGUMENT naming the
  // field.
  std::function<absl::StatusOr<std::vector<Request>>(const ServingModel&)> build{};

  // Of a Generate call: a request for each continuation.
  static CallPlan Of(GenerateParams params);
};

class GenerateForm {
 public:
  virtual ~GenerateForm() = default;
  // Once, before the messages. INVALID_ARGUMENT for bytes that are no request of this API;
  // UNIMPLEMENTED for what it may ask and Tandem does not have.
  virtual absl::StatusOr<CallPlan> Parse(const grpc::ByteBuffer& request) = 0;
  // Once the request is admitted, before any message.
  virtual void Begin(TokenId first_of_prompt) { static_cast<void>(first_of_prompt); }
  // Appends the messages for the next update, whose status is OK, of request `index` of the
  // call `id`; none if they are to come with a later one, so at least one for the last.
  virtual void AppendMessages(const std::string& id, uint32_t index, TextUpdate update,
                              std::deque<grpc::ByteBuffer>& messages) = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_GENERATE_FORM_H_
