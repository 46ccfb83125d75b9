// CheckResult: whether a StepResult answers what its step asked. A worker is another program: its
// result is checked before it is used.
#ifndef TANDEM_COORDINATOR_ENGINE_RESULT_CHECK_H_
#define TANDEM_COORDINATOR_ENGINE_RESULT_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/step/descriptor.h"
#include "common/step/result.h"

namespace tandem::coordinator {

// Rows, and in each row 1 to max_tokens samples where one was wanted, and for each of them logits
// and log-probabilities as many as were wanted; ids in the vocabulary, and the ones that were asked
// about; ranks from 1 on. UNAVAILABLE saying what does not
// agree: such a worker is lost.
absl::Status CheckResult(const step::StepDescriptor& step, const step::StepResult& result,
                         uint32_t vocab_size);

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_ENGINE_RESULT_CHECK_H_
