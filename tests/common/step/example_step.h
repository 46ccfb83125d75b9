// Valid steps and limits for the tests of common/step.
#ifndef TANDEM_TESTS_COMMON_STEP_EXAMPLE_STEP_H_
#define TANDEM_TESTS_COMMON_STEP_EXAMPLE_STEP_H_

#include <cstdint>

#include "common/step/descriptor.h"
#include "common/step/result.h"

namespace tandem::step {

// Vocabulary 100, blocks of 4, two KV groups, the second with a window of 5 tokens.
StepLimits ExampleLimits();

// Sequence A (slot 2) decodes token 7 at position 20, sequence B (slot 0) prefills tokens 1 2 3
// from position 0; both are sampled, A's whole row of logits is wanted too.
StepDescriptor ExampleStep();

// A decode step of `seqs` sequences that each have `context_len` tokens in blocks of `block_size`,
// and limits that it fits.
StepDescriptor LargeStep(uint32_t seqs, uint32_t context_len, uint32_t block_size);
StepLimits LargeLimits(const StepDescriptor& step, uint32_t block_size);

StepResult ExampleResult();

}  // namespace tandem::step

#endif  // TANDEM_TESTS_COMMON_STEP_EXAMPLE_STEP_H_
