// Valid steps and limits for the tests of common/step.
#ifndef TANDEM_TESTS_COMMON_STEP_EXAMPLE_STEP_H_
#define TANDEM_TESTS_COMMON_STEP_EXAMPLE_STEP_H_

#include <cstdint>

#include "common/step/block_tables.h"
#include "common/step/descriptor.h"
#include "common/step/result.h"

namespace tandem::step {

// Vocabulary 100, blocks of 4, two KV groups, the second with a window of 5 tokens.
StepLimits ExampleLimits();

// Sequence A (slot 2) decodes the token that the step before has drawn for position 20, for which
// it gets its sixth block; sequence B (slot 0) prefills tokens 1 2 3 from position 0; both are
// sampled, A's whole row of logits is wanted too.
StepDescriptor ExampleStep();
// The tables before that step: A has blocks 3 4 5 6 15, and - - - 2 9 in the second group. The last
// step has drawn token 2 of slot 3, then token 20 of A.
BlockTables ExampleTables();

// The first step of `seqs` sequences whose `context_len` tokens all but one were found in the
// cache, in blocks of `block_size`, and limits that it fits. Also with `length_before` blocks
// known.
StepDescriptor LargeStep(uint32_t seqs, uint32_t context_len, uint32_t block_size,
                         uint32_t length_before = 0);
StepLimits LargeLimits(const StepDescriptor& step, uint32_t block_size);

StepResult ExampleResult();

}  // namespace tandem::step

#endif  // TANDEM_TESTS_COMMON_STEP_EXAMPLE_STEP_H_
