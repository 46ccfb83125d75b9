#include "tests/worker/step_bench/bench_backend.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/status.h"
#include "common/tensor/f16.h"
#include "tests/kernels/cuda/table/random_rows.h"

namespace tandem::kernels::cuda {
namespace {

constexpr size_t kRandomHalves = size_t{1} << 22;
constexpr auto kCopyTimeout = std::chrono::minutes(1);

}  // namespace

std::vector<std::span<std::byte>> BenchBackend::AllocatedBy(const std::function<void()>& allocate) {
  std::vector<std::span<std::byte>> allocations;
  allocations_ = &allocations;
  allocate();
  allocations_ = nullptr;
  return allocations;
}

absl::StatusOr<Buffer> BenchBackend::Allocate(size_t bytes) {
  TANDEM_ASSIGN_OR_RETURN(Buffer buffer, CudaBackend::Allocate(bytes));
  if (allocations_ != nullptr) allocations_->push_back({buffer.data(), buffer.bytes()});
  return buffer;
}

absl::StatusOr<Weight> BenchBackend::PlaceWeight(const Weight& host) {
  Weight values = host;
  const size_t rows = size_t{host.rows} * host.count;
  values_.resize(rows * tensor::RowBytes(host.type, host.cols));
  FillRandomRows(random_, host.type, host.cols, values_);
  values.data = values_.data();
  values.row_stride_bytes = tensor::RowBytes(host.type, host.cols);
  values.matrix_stride_bytes = values.row_stride_bytes * host.rows;
  return CudaBackend::PlaceWeight(values);
}

absl::Status BenchBackend::FillRandom(std::span<std::byte> memory) {
  std::vector<uint16_t> halves(std::min(kRandomHalves, memory.size() / sizeof(uint16_t)));
  std::minstd_rand random(3);
  for (uint16_t& half : halves) {
    half = tensor::FloatToHalf(static_cast<float>(random() % 2000) / 1000.0f - 1);
  }
  size_t filled = halves.size() * sizeof(uint16_t);
  BeginEncode(EncodeMode::kRun);
  Upload(memory.data(), halves.data(), filled);
  for (size_t part; filled < memory.size(); filled += part) {
    part = std::min(filled, memory.size() - filled);
    stream().Copy(memory.data() + filled, memory.data(), part, cudaMemcpyDeviceToDevice);
  }
  return SubmitAndWait(Deadline::After(kCopyTimeout));
}

absl::StatusOr<std::vector<std::byte>> BenchBackend::Read(std::span<const std::byte> memory) {
  std::vector<std::byte> bytes(memory.size());
  BeginEncode(EncodeMode::kRun);
  Download(bytes.data(), memory.data(), memory.size());
  TANDEM_RETURN_IF_ERROR(SubmitAndWait(Deadline::After(kCopyTimeout)));
  return bytes;
}

void BenchBackend::BeginEncode(EncodeMode mode) {
  CudaBackend::BeginEncode(mode);
  planning_ = mode == EncodeMode::kPlan;
}

void BenchBackend::Encode(const Op& op) {
  const std::string name(OpName(op));
  if (!planning_) seen_.insert(name);
  if (name != left_out_) CudaBackend::Encode(op);
}

}  // namespace tandem::kernels::cuda
