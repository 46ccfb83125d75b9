// TandemForm: tandem.v1.Generation's Generate.
#ifndef TANDEM_COORDINATOR_API_GRPC_TANDEM_FORM_H_
#define TANDEM_COORDINATOR_API_GRPC_TANDEM_FORM_H_

#include "coordinator/api/grpc/generate_form.h"

namespace tandem::coordinator {

class TandemForm final : public GenerateForm {
 public:
  absl::StatusOr<CallPlan> Parse(const grpc::ByteBuffer& request) override;
  void AppendMessages(const std::string& id, uint32_t index, TextUpdate update,
                      std::deque<grpc::ByteBuffer>& messages) override;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_TANDEM_FORM_H_
