#include "worker/runtime/runner_plan.h"

#include "absl/strings/str_cat.h"
#include "common/model/human_bytes.h"

namespace tandem::worker {

std::vector<std::string> RunnerPlan::Lines() const {
  using model::HumanBytes;
  return {absl::StrCat("weights      ", HumanBytes(weights_bytes)),
          absl::StrCat("activations  ", HumanBytes(activation_bytes)),
          absl::StrCat("workspace    ", HumanBytes(workspace_bytes)),
          absl::StrCat("step buffers ", HumanBytes(buffers_bytes)),
          absl::StrCat("KV cache     ", HumanBytes(kv_bytes()), " (", kv.Text(num_kv_blocks), ")"),
          absl::StrCat("total        ", HumanBytes(total_bytes()))};
}

}  // namespace tandem::worker
