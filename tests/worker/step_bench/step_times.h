// Medians over steps of one kind.
#ifndef TANDEM_TESTS_WORKER_STEP_BENCH_STEP_TIMES_H_
#define TANDEM_TESTS_WORKER_STEP_BENCH_STEP_TIMES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/worker/step_bench/bench_runner.h"

namespace tandem::worker {

// Microseconds.
struct StepTimes {
  double encode = 0;
  double submit = 0;
  double wait = 0;
  double step = 0;  // all of it, with the host's part around the phases
};

// `steps` steps after a warm-up. Each sequence of `sequences` begins anew, and decodes on from
// there; those with more than one token are repeated as they are.
absl::StatusOr<StepTimes> MedianTimes(BenchRunner& runner,
                                      const std::vector<BenchSequence>& sequences, uint32_t steps);

// `batch` sequences that decode at `context_len`.
std::vector<BenchSequence> DecodeBatch(uint32_t batch, uint32_t context_len);

// Of MedianTimes' steps, and of those of its warm-up.
inline constexpr uint32_t kWarmUpSteps = 3;

}  // namespace tandem::worker

#endif  // TANDEM_TESTS_WORKER_STEP_BENCH_STEP_TIMES_H_
