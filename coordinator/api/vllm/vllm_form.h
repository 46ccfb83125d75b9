// VllmForm: vllm.grpc.engine.VllmEngine's Generate, with the meanings of vLLM's own servicer
// (smg-grpc-servicer on PyPI).
#ifndef TANDEM_COORDINATOR_API_VLLM_VLLM_FORM_H_
#define TANDEM_COORDINATOR_API_VLLM_VLLM_FORM_H_

#include <vector>

#include "coordinator/api/grpc/generate_form.h"
#include "proto/vllm/vllm_engine.pb.h"

namespace tandem::coordinator {

namespace vllm_api = vllm::grpc::engine;

// UNIMPLEMENTED naming the first field that asks for what Tandem does not have; INVALID_ARGUMENT
// for an id or a count beyond 31 bits.
absl::StatusOr<GenerateParams> ParamsFromVllm(const vllm_api::GenerateRequest& proto);

class VllmForm final : public GenerateForm {
 public:
  absl::StatusOr<CallPlan> Parse(const grpc::ByteBuffer& request) override;
  void Begin(TokenId first_of_prompt) override { first_token_ = first_of_prompt; }
  void AppendMessages(const std::string& id, uint32_t index, TextUpdate update,
                      std::deque<grpc::ByteBuffer>& messages) override;

 private:
  bool stream_ = false;
  TokenId first_token_ = 0;           // of the prompt
  std::vector<TextUpdate> gathered_;  // without stream: by index
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_VLLM_VLLM_FORM_H_
