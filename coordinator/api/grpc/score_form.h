// ScoreForm: tandem.v1.Generation's Score.
#ifndef TANDEM_COORDINATOR_API_GRPC_SCORE_FORM_H_
#define TANDEM_COORDINATOR_API_GRPC_SCORE_FORM_H_

#include <deque>
#include <string>
#include <vector>

#include "coordinator/api/grpc/generate_form.h"
#include "coordinator/api/score_request.h"
#include "proto/tandem/v1/generation.pb.h"

namespace tandem::coordinator {

ScoreParams ScoreParamsFromProto(const v1::ScoreRequest& proto);

class ScoreForm final : public GenerateForm {
 public:
  absl::StatusOr<CallPlan> Parse(const grpc::ByteBuffer& request) override;
  void AppendMessages(const std::string& id, uint32_t index, TextUpdate update,
                      std::deque<grpc::ByteBuffer>& messages) override;

 private:
  // Of a continuation, over its messages so far.
  struct Total {
    double logprob = 0;
    bool is_greedy = true;
  };
  std::vector<Total> totals_;  // by index
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_API_GRPC_SCORE_FORM_H_
