#include "tests/kernels/cuda/table/ceilings.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "common/base/status.h"
#include "common/tensor/f16.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/dense_gemm.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/stream.h"
#include "tests/kernels/cuda/table/read_all.h"
#include "tests/kernels/cuda/table/timer.h"

namespace tandem::kernels::cuda {
namespace {

constexpr int kWarmUps = 3;
constexpr size_t kRuns = 9;

absl::Status ErrorOf(const Stream& stream) {
  return stream.error().empty() ? absl::OkStatus() : absl::InternalError(stream.error());
}

// Median seconds of `work`, which only enqueues.
absl::StatusOr<double> Time(Stream& stream, const std::function<void()>& work) {
  Timer timer(stream.handle());
  TANDEM_RETURN_IF_ERROR(timer.Open());
  for (int i = 0; i < kWarmUps; ++i) work();
  std::array<double, kRuns> seconds{};
  for (double& one : seconds) {
    TANDEM_RETURN_IF_ERROR(timer.Start());
    work();
    TANDEM_RETURN_IF_ERROR(timer.Stop());
    TANDEM_RETURN_IF_ERROR(ErrorOf(stream));
    TANDEM_ASSIGN_OR_RETURN(one, timer.Seconds());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[kRuns / 2];
}

absl::StatusOr<double> CopyRate(Stream& stream, size_t bytes) {
  TANDEM_ASSIGN_OR_RETURN(const Buffer from, AllocateDevice(bytes));
  TANDEM_ASSIGN_OR_RETURN(const Buffer to, AllocateDevice(bytes));
  TANDEM_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(from.data(), 0x5a, bytes, stream.handle()));
  TANDEM_ASSIGN_OR_RETURN(const double seconds, Time(stream, [&] {
                            stream.Copy(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice);
                          }));
  return 2.0 * static_cast<double>(bytes) / seconds;
}

absl::StatusOr<double> ReadRate(Stream& stream, size_t bytes) {
  TANDEM_ASSIGN_OR_RETURN(const Buffer from, AllocateDevice(bytes));
  TANDEM_ASSIGN_OR_RETURN(const Buffer out, AllocateDevice(sizeof(unsigned)));
  TANDEM_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(from.data(), 0x5a, bytes, stream.handle()));
  TANDEM_ASSIGN_OR_RETURN(const double seconds, Time(stream, [&] {
                            EncodeReadAll(stream, from.data(), bytes, out.data());
                          }));
  return static_cast<double>(bytes) / seconds;
}

absl::StatusOr<Buffer> RandomBf16(Stream& stream, size_t count) {
  TANDEM_ASSIGN_OR_RETURN(Buffer buffer, AllocateDevice(count * sizeof(uint16_t)));
  std::vector<uint16_t> values(count);
  std::minstd_rand random(1);
  for (uint16_t& value : values) {
    value = tensor::FloatToBf16(static_cast<float>(random() % 2001) / 1000.0f - 1);
  }
  stream.Copy(buffer.data(), values.data(), buffer.bytes(), cudaMemcpyHostToDevice);
  TANDEM_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream.handle()));
  return buffer;
}

absl::StatusOr<double> MatrixRate(Stream& stream, uint32_t size) {
  const size_t count = size_t{size} * size;
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<DenseGemm> gemm, MakeDenseGemm());
  TANDEM_ASSIGN_OR_RETURN(const Buffer a, RandomBf16(stream, count));
  TANDEM_ASSIGN_OR_RETURN(const Buffer b, RandomBf16(stream, count));
  TANDEM_ASSIGN_OR_RETURN(const Buffer c, AllocateDevice(count * sizeof(float)));
  const GemmParams params{.type = GemmParams::Type::kBf16,
                          .a = a.data(),
                          .a_stride = size,
                          .b = b.data(),
                          .b_stride = size,
                          .c = reinterpret_cast<float*>(c.data()),
                          .c_stride = size,
                          .m = size,
                          .n = size,
                          .k = size};
  stream.Begin(/*planning=*/true);
  gemm->Encode(stream, params);
  stream.Begin(/*planning=*/false);
  TANDEM_ASSIGN_OR_RETURN(const double seconds,
                          Time(stream, [&] { gemm->Encode(stream, params); }));
  return 2.0 * static_cast<double>(count) * size / seconds;
}

}  // namespace

absl::StatusOr<Ceilings> MeasureCeilings(size_t bytes, uint32_t matrix) {
  Stream stream;
  TANDEM_CUDA_RETURN_IF_ERROR(stream.Create());
  stream.Begin(/*planning=*/false);
  Ceilings ceilings;
  TANDEM_ASSIGN_OR_RETURN(ceilings.read_bytes_per_s, ReadRate(stream, bytes));
  TANDEM_ASSIGN_OR_RETURN(ceilings.copy_bytes_per_s, CopyRate(stream, bytes));
  TANDEM_ASSIGN_OR_RETURN(ceilings.flops_per_s, MatrixRate(stream, matrix));
  return ceilings;
}

}  // namespace tandem::kernels::cuda
