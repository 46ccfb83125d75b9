#include "coordinator/startup/token_budget.h"

#include <algorithm>

namespace tandem::coordinator {
namespace {

// On the CPU dense layers reach their full rate with fewer (docs/performance/servers.md, "Servers
// side by side"). An expert sees only a part of a step's tokens, and a GPU needs more of them.
constexpr uint32_t kDenseCpuTokens = 256;
constexpr uint32_t kOtherTokens = 512;

}  // namespace

uint32_t DefaultTokenBudget(const config::WorkerConfig& worker, const model::ModelSpec& spec) {
  const bool is_dense = !spec.moe.has_value() && !spec.delta_net.has_value();
  const bool is_cpu = worker.device.device == config::Device::kCpu;
  // Where every sequence decodes, half of the step is left for prefill.
  return std::max(is_cpu && is_dense ? kDenseCpuTokens : kOtherTokens,
                  2 * worker.limits.max_num_seqs);
}

}  // namespace tandem::coordinator
