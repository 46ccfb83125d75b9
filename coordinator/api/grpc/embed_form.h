// EmbedForm: tandem.v1.Generation's Embed.
#ifndef TANDEM_COORDINATOR_API_GRPC_EMBED_FORM_H_
#define TANDEM_COORDINATOR_API_GRPC_EMBED_FORM_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "coordinator/api/embed_request.h"
#include "coordinator/api/grpc/generate_form.h"
#include "proto/tandem/v1/generation.pb.h"

namespace tandem::coordinator {

// INVALID_ARGUMENT for a way to pool that does not exist.
absl::StatusOr<EmbedParams> EmbedParamsFromProto(const v1::EmbedRequest& proto);

class EmbedForm final : public GenerateForm {
 public:
  absl::StatusOr<CallPlan> Parse(const grpc::ByteBuffer& request) override;
  void AppendMessages(const std::string& id, uint32_t index, TextUpdate update,
                      std::deque<grpc::ByteBuffer>& messages) override;

 private:
  bool normalize_ = true;
  std::optional<int32_t> dimensions_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_EMBED_FORM_H_
