// DenseGemm: dense GEMM by cuBLASLt (by plain loops under emulation).
//
// The workspace is allocated once; an algorithm is looked up once per shape and bucket of m
// (gemm_plans.h). Encoding neither synchronises nor allocates device memory. One thread.
#ifndef TANDEM_KERNELS_CUDA_DENSE_GEMM_H_
#define TANDEM_KERNELS_CUDA_DENSE_GEMM_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

// c[i, j] = sum over k of a[i, k] * b[j, k], rows dense or strided (in elements). Sums are float;
// F32 inputs are not rounded (no TF32). Both inputs are of one type.
struct GemmParams {
  enum class Type { kF32, kF16, kBf16 };
  Type type = Type::kF32;
  const void* a = nullptr;  // (m, k), rows a_stride apart
  uint32_t a_stride = 0;
  const void* b = nullptr;  // (n, k), rows b_stride apart
  uint32_t b_stride = 0;
  float* c = nullptr;  // (m, n), rows c_stride apart
  uint32_t c_stride = 0;
  uint32_t m = 0;
  uint32_t n = 0;
  uint32_t k = 0;
};

class DenseGemm {
 public:
  virtual ~DenseGemm() = default;
  // Appends the product to the stream. A plan pass looks up the algorithm and encodes nothing.
  virtual void Encode(Stream& stream, const GemmParams& params) = 0;
  // Device memory held.
  virtual uint64_t workspace_bytes() const = 0;
};

// On the current device.
absl::StatusOr<std::unique_ptr<DenseGemm>> MakeDenseGemm();

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_DENSE_GEMM_H_
