// StepMaker: steps as a coordinator would make them, for sequences of any context length: what
// stands before a step's tokens need not have been computed. Blocks are handed out in random order.
#ifndef TANDEM_TESTS_WORKER_STEP_BENCH_STEP_MAKER_H_
#define TANDEM_TESTS_WORKER_STEP_BENCH_STEP_MAKER_H_

#include <cstdint>
#include <random>
#include <vector>

#include "common/step/descriptor.h"

namespace tandem::worker {

// A sequence's part of a step.
struct BenchSequence {
  uint32_t slot = 0;
  uint32_t context_len = 0;  // with the step's tokens
  uint32_t query_len = 1;
};

class StepMaker {
 public:
  // One KV group of `num_blocks` blocks.
  StepMaker(uint32_t vocab, uint32_t block_size, uint32_t num_blocks);

  // The slots begin anew with their next step; their blocks are free.
  void Forget(uint32_t slot);
  void ForgetAll();
  // Step ids count up from 1. Random tokens; every sequence samples after its last one. REQUIRES:
  // there are blocks.
  step::StepDescriptor Make(const std::vector<BenchSequence>& sequences, float temperature);

 private:
  void Append(const BenchSequence& sequence, float temperature, step::StepDescriptor& step);

  const uint32_t vocab_;
  const uint32_t block_size_;
  std::mt19937_64 random_{17};  // tokens; the same whatever the number of blocks
  uint64_t last_step_ = 0;
  std::vector<BlockId> free_;
  std::vector<std::vector<BlockId>> tables_;  // by slot
};

}  // namespace tandem::worker

#endif  // TANDEM_TESTS_WORKER_STEP_BENCH_STEP_MAKER_H_
