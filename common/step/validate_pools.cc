#include "common/step/validate_pools.h"

#include "common/base/status.h"
#include "common/step/invalid.h"

namespace tandem::step {

absl::Status ValidatePools(const StepDescriptor& step, const StepLimits& limits) {
  if (step.pools.size() > limits.MaxPools()) {
    return Invalid(step.pools.size(), " states are pooled, at most ", limits.MaxPools(), " fit");
  }
  size_t s = 0;  // whose pool is next, at the earliest
  for (size_t p = 0; p < step.pools.size(); ++p) {
    const PoolRequest& pool = step.pools[p];
    while (s < step.sequences.size() && step.query_offsets[s + 1] <= pool.begin) ++s;
    if (s == step.sequences.size() || pool.begin < step.query_offsets[s] ||
        pool.end <= pool.begin || pool.end > step.query_offsets[s + 1]) {
      return Invalid("pool ", p, " is of tokens ", pool.begin, "..", pool.end,
                     ", needed some of one sequence, of each at most once, ascending");
    }
    ++s;
  }
  return absl::OkStatus();
}

}  // namespace tandem::step
