// BenchBackend: the CUDA backend as benchmarks and checks of whole steps need it:
//   - weights are random values in the host weight's shape; the host's are not read;
//   - an op can be left out, to see what it costs.
#ifndef TANDEM_TESTS_WORKER_STEP_BENCH_BENCH_BACKEND_H_
#define TANDEM_TESTS_WORKER_STEP_BENCH_BENCH_BACKEND_H_

#include <cstddef>
#include <functional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/cuda_backend.h"

namespace tandem::kernels::cuda {

class BenchBackend final : public CudaBackend {
 public:
  using CudaBackend::CudaBackend;

  // Ops of this name are not encoded from now on. Empty: all are.
  void LeaveOut(std::string op) { left_out_ = std::move(op); }
  // Names of the ops encoded so far, but for plan passes.
  const std::set<std::string>& seen() const { return seen_; }

  // Memory allocated by `allocate`, in order.
  std::vector<std::span<std::byte>> AllocatedBy(const std::function<void()>& allocate);
  // Random halves in [-1, 1), the same each time.
  absl::Status FillRandom(std::span<std::byte> memory);
  absl::StatusOr<std::vector<std::byte>> Read(std::span<const std::byte> memory);

  // --- Backend ---
  absl::StatusOr<Buffer> Allocate(size_t bytes) override;
  absl::StatusOr<Weight> PlaceWeight(const Weight& host) override;
  void OnCopied(std::function<void(std::span<const std::byte>)>) override {}
  void BeginEncode(EncodeMode mode) override;
  void Encode(const Op& op) override;

 private:
  std::minstd_rand random_{11};
  std::vector<std::byte> values_;  // of the weight being placed
  std::string left_out_;
  std::set<std::string> seen_;
  bool planning_ = false;
  std::vector<std::span<std::byte>>* allocations_ = nullptr;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_TESTS_WORKER_STEP_BENCH_BENCH_BACKEND_H_
