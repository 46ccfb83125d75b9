// GenerateForm: how one API's Generate call looks on the wire. One per call; used by one thread at
// a time.
#ifndef TANDEM_COORDINATOR_API_GRPC_GENERATE_FORM_H_
#define TANDEM_COORDINATOR_API_GRPC_GENERATE_FORM_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <deque>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "coordinator/api/generate_params.h"
#include "coordinator/api/text_update.h"

namespace tandem::coordinator {

class GenerateForm {
 public:
  virtual ~GenerateForm() = default;
  // Once, before the messages. INVALID_ARGUMENT for bytes that are no request of this API;
  // UNIMPLEMENTED for what it may ask and Tandem does not have.
  virtual absl::StatusOr<GenerateParams> Parse(const grpc::ByteBuffer& request) = 0;
  // Once the request is admitted, before any message.
  virtual void Begin(TokenId first_of_prompt) { static_cast<void>(first_of_prompt); }
  // Appends the messages for the next update, whose status is OK, of continuation `index` of the
  // request `id`; none if they are to come with a later one, so at least one for the last.
  virtual void AppendMessages(const std::string& id, uint32_t index, TextUpdate update,
                              std::deque<grpc::ByteBuffer>& messages) = 0;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_GENERATE_FORM_H_
