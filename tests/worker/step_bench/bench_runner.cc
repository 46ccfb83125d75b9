#include "tests/worker/step_bench/bench_runner.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "kernels/cuda/check.h"
#include "kernels/factory.h"

namespace tandem::worker {
namespace {

using kernels::cuda::BenchBackend;

constexpr auto kStepTimeout = std::chrono::minutes(2);

RunnerOptions OptionsFor(const BenchLimits& limits) {
  RunnerOptions options;
  options.config.device = {.device = config::Device::kCuda, .enforce_eager = !limits.graphs};
  options.config.model.spec.max_model_len = limits.max_model_len;
  options.config.cache = {.block_size = kBenchBlockSize, .num_kv_blocks = limits.num_blocks};
  options.config.limits = {.max_num_seqs = limits.max_seqs,
                           .max_num_batched_tokens = limits.max_tokens};
  options.config.transport.max_result_bytes = {uint64_t{1} << 30};
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<kernels::Backend>> MakeBenchBackend(int device_index) {
  TANDEM_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_index));
  auto backend = std::make_unique<BenchBackend>("cuda");
  TANDEM_RETURN_IF_ERROR(backend->Open());
  return backend;
}

absl::StatusOr<std::unique_ptr<BenchDevice>> BenchDevice::Load(const BenchShape& shape) {
  kernels::RegisterCuda(&MakeBenchBackend);
  TANDEM_ASSIGN_OR_RETURN(BenchModel model, BenchModel::Make(shape));
  std::unique_ptr<BenchDevice> device(new BenchDevice(shape, std::move(model)));
  LoadOptions options;
  options.config.model.path = device->model_.path();
  options.config.device.device = config::Device::kCuda;
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<DescribedModel> described, DescribeModel(options));
  TANDEM_ASSIGN_OR_RETURN(device->loaded_, LoadWeights(std::move(described), nullptr));
  return device;
}

absl::StatusOr<std::unique_ptr<BenchRunner>> BenchRunner::Start(BenchDevice& device,
                                                                const BenchLimits& limits) {
  std::unique_ptr<BenchRunner> runner(new BenchRunner(device, limits, OptionsFor(limits)));
  TANDEM_RETURN_IF_ERROR(runner->Start());
  return runner;
}

absl::Status BenchRunner::Start() {
  BenchBackend& backend = device_.backend();
  absl::Status status;
  const auto prepared = backend.AllocatedBy([&] { status = runner_.Prepare().status(); });
  TANDEM_RETURN_IF_ERROR(status);
  activations_ = prepared.at(0);
  const int64_t begin = NowMicros();
  const auto allocated = backend.AllocatedBy(
      [&] { status = runner_.Start(Epoch{1}, {limits_.num_blocks}, /*comm=*/nullptr); });
  start_seconds_ = static_cast<double>(NowMicros() - begin) * 1e-6;
  TANDEM_RETURN_IF_ERROR(status);
  pages_ = allocated.at(0);  // KV pages come first
  return backend.FillRandom(pages_);
}

absl::StatusOr<step::StepResult> BenchRunner::Run(const step::StepDescriptor& step) {
  return runner_.Run(step, Deadline::After(kStepTimeout));
}

}  // namespace tandem::worker
