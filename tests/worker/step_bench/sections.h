// The sections of step_bench. Each prints its results as they come and records its figures.
#ifndef TANDEM_TESTS_WORKER_STEP_BENCH_SECTIONS_H_
#define TANDEM_TESTS_WORKER_STEP_BENCH_SECTIONS_H_

#include <string>

#include "absl/status/status.h"
#include "tests/kernels/cuda/table/ceilings.h"
#include "tests/kernels/cuda/table/figures.h"

namespace tandem::worker {

struct BenchContext {
  bool toy = false;    // small shapes, for machines that emulate
  std::string only{};  // the name of the one shape that `step` times; empty: all
  kernels::cuda::Ceilings ceilings{};
  kernels::Figures& figures;
};

// Times of whole steps, by batch size and prompt length, with graphs and without.
absl::Status TimeSteps(const BenchContext& context);
// Steps of a runner whose activations and scratch begin as NaNs equal, bit for bit, those of one
// whose do not: tokens of every step and KV pages in the end. With graphs against without, and
// graphs of padded batches against each other.
absl::Status CheckPoisonedReplays(const BenchContext& context);
// Step times with one op left out.
absl::Status TimeAblations(const BenchContext& context);
// Weights above 4 GiB, a pool of KV pages as large as memory allows, the longest context, many
// graphs.
absl::Status CheckSizes(const BenchContext& context);

}  // namespace tandem::worker

#endif  // TANDEM_TESTS_WORKER_STEP_BENCH_SECTIONS_H_
