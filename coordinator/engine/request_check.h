// RequestCheck: the engine's checks of every request, so that no client's request can make a step
// fail. Immutable, hence thread-safe.
#ifndef TANDEM_COORDINATOR_ENGINE_REQUEST_CHECK_H_
#define TANDEM_COORDINATOR_ENGINE_REQUEST_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "coordinator/engine/engine_config.h"
#include "coordinator/engine/request.h"
#include "coordinator/scheduler/admission.h"

namespace tandem::coordinator {

// Checks of sampling parameters that do not depend on the model: ranges and lengths.
// INVALID_ARGUMENT naming the field of the API's SamplingParams, the found and the allowed value.
absl::Status CheckSampling(const Sampling& sampling);

// Whether an answer of these parameters may have a form: INVALID_ARGUMENT if they could ban the
// only token that it allows.
absl::Status CheckBesideForm(const Sampling& sampling);

class RequestCheck {
 public:
  explicit RequestCheck(const EngineConfig& config)
      : admission_(config.scheduler, config.kv_cache),
        vocab_size_(config.vocab_size),
        num_adapters_(config.num_adapters),
        pools_(config.MaxPools() > 0) {}

  // INVALID_ARGUMENT naming the field, the found and the allowed value.
  absl::Status Check(const Request& request) const;

 private:
  absl::Status CheckWithoutTokens(const Request& request) const;

  const Admission admission_;
  const uint32_t vocab_size_;
  const uint32_t num_adapters_;
  const bool pools_;
};

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_REQUEST_CHECK_H_
