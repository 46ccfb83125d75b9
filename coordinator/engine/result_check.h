// CheckResult: whether a StepResult matches its step's requests. A worker is another process: its
// result is checked before use.
#ifndef TANDEM_COORDINATOR_ENGINE_RESULT_CHECK_H_
#define TANDEM_COORDINATOR_ENGINE_RESULT_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/step/descriptor.h"
#include "common/step/result.h"

namespace tandem::coordinator {

// Checks the number of rows, in each row 1 to max_tokens samples if requested, and for each the
// requested number of logits and log-probabilities; that ids are in the vocabulary and are the
// requested ones; ranks from 1 on; the number of pooled values. UNAVAILABLE naming the mismatch:
// such a worker is lost.
absl::Status CheckResult(const step::StepDescriptor& step, const step::StepResult& result,
                         uint32_t vocab_size, uint32_t hidden_size);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_RESULT_CHECK_H_
