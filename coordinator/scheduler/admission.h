// Admission: rejects requests that can never fit, so that every waiting request will run.
// Immutable, hence thread-safe.
#ifndef TANDEM_COORDINATOR_SCHEDULER_ADMISSION_H_
#define TANDEM_COORDINATOR_SCHEDULER_ADMISSION_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "coordinator/kvcache/kv_config.h"
#include "coordinator/scheduler/scheduler_config.h"

namespace tandem::coordinator {

class Admission {
 public:
  Admission(const SchedulerConfig& scheduler, KvCacheConfig kv_cache)
      : scheduler_(scheduler), kv_cache_(std::move(kv_cache)) {}

  // INVALID_ARGUMENT with the needed and the available number: longer than max_model_len, or
  // needing more blocks than exist; and the max_tokens that this prompt allows.
  // No max_tokens: nothing is generated. REQUIRES: at least one prompt token.
  absl::Status Check(uint64_t prompt_tokens, uint64_t max_tokens) const;

 private:
  // The most tokens of a sequence, prompt and generated ones, and what this prompt leaves of them.
  std::string Allowed(uint64_t prompt_tokens, uint64_t max_tokens) const;
  uint64_t MostPrompt(uint64_t max_tokens) const;

  const SchedulerConfig scheduler_;
  const KvCacheConfig kv_cache_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_SCHEDULER_ADMISSION_H_
