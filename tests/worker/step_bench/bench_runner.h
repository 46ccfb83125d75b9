// A model on the device, and runners of its steps.
#ifndef TANDEM_TESTS_WORKER_STEP_BENCH_BENCH_RUNNER_H_
#define TANDEM_TESTS_WORKER_STEP_BENCH_BENCH_RUNNER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/worker/step_bench/bench_backend.h"
#include "tests/worker/step_bench/bench_model.h"
#include "tests/worker/step_bench/step_maker.h"
#include "worker/runtime/model_runner.h"

namespace tandem::worker {

inline constexpr uint32_t kBenchBlockSize = 16;

struct BenchLimits {
  uint32_t max_seqs = 0;
  uint32_t max_tokens = 0;
  uint32_t max_model_len = 0;
  uint32_t num_blocks = 0;
  bool graphs = true;
};

// A backend on that device, current from then on.
absl::StatusOr<std::unique_ptr<kernels::Backend>> MakeBenchBackend(int device_index);

// Weights on device 0.
class BenchDevice {
 public:
  static absl::StatusOr<std::unique_ptr<BenchDevice>> Load(const BenchShape& shape);

  const BenchShape& shape() const { return shape_; }
  const BenchCost& cost() const { return model_.cost(); }
  kernels::cuda::BenchBackend& backend() {
    return static_cast<kernels::cuda::BenchBackend&>(loaded_->backend());
  }
  LoadedModel& model() { return *loaded_; }
  uint64_t free_bytes() { return backend().Memory()->free_bytes; }

 private:
  BenchDevice(const BenchShape& shape, BenchModel model)
      : shape_(shape), model_(std::move(model)) {}

  const BenchShape shape_;
  BenchModel model_;
  std::unique_ptr<LoadedModel> loaded_;
};

class BenchRunner {
 public:
  // Random values in the KV pages. `device` outlives this.
  static absl::StatusOr<std::unique_ptr<BenchRunner>> Start(BenchDevice& device,
                                                            const BenchLimits& limits);

  // Seconds that Start took: allocation, and the capture of graphs.
  double start_seconds() const { return start_seconds_; }
  StepMaker& steps() { return steps_; }
  absl::StatusOr<step::StepResult> Run(const step::StepDescriptor& step);
  // From now on all steps on the device begin with NaNs in this runner's activations and in
  // scratch.
  void Poison() { device_.backend().PoisonBetweenSteps(activations_); }
  // The KV pages' bytes.
  absl::StatusOr<std::vector<std::byte>> Pages() { return device_.backend().Read(pages_); }

 private:
  BenchRunner(BenchDevice& device, const BenchLimits& limits, const RunnerOptions& options)
      : device_(device),
        limits_(limits),
        runner_(device.model(), options),
        steps_(device.shape().vocab, kBenchBlockSize, limits.num_blocks) {}
  absl::Status Start();

  BenchDevice& device_;
  const BenchLimits limits_;
  ModelRunner runner_;
  StepMaker steps_;
  std::span<std::byte> activations_;
  std::span<std::byte> pages_;
  double start_seconds_ = 0;
};

}  // namespace tandem::worker

#endif  // TANDEM_TESTS_WORKER_STEP_BENCH_BENCH_RUNNER_H_
