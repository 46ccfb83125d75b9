#include "tests/worker/step_bench/step_times.h"

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace tandem::worker {
namespace {

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

std::vector<BenchSequence> DecodeBatch(uint32_t batch, uint32_t context_len) {
  std::vector<BenchSequence> sequences;
  for (uint32_t slot = 0; slot < batch; ++slot) {
    sequences.push_back({.slot = slot, .context_len = context_len});
  }
  return sequences;
}

absl::StatusOr<StepTimes> MedianTimes(BenchRunner& runner,
                                      const std::vector<BenchSequence>& sequences, uint32_t steps) {
  std::vector<double> encode, submit, wait, step;
  std::vector<BenchSequence> present = sequences;
  runner.steps().ForgetAll();
  for (uint32_t i = 0; i < kWarmUpSteps + steps; ++i) {
    const step::StepDescriptor descriptor = runner.steps().Make(present, /*temperature=*/0);
    const int64_t begin = NowMicros();
    TANDEM_ASSIGN_OR_RETURN(const step::StepResult result, runner.Run(descriptor));
    const int64_t end = NowMicros();
    for (BenchSequence& sequence : present) {
      if (sequence.query_len == 1) ++sequence.context_len;
    }
    if (i < kWarmUpSteps) continue;
    encode.push_back(result.timings.encode_us);
    submit.push_back(result.timings.submit_us);
    wait.push_back(result.timings.wait_us);
    step.push_back(static_cast<double>(end - begin));
  }
  return StepTimes{Median(encode), Median(submit), Median(wait), Median(step)};
}

}  // namespace tandem::worker
