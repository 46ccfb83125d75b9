// DenseGemm under emulation: the definition, element by element.
#include <cmath>
#include <vector>

#include "common/tensor/f16.h"
#include "kernels/cuda/dense_gemm.h"
#include "tools/cuda_emulation/runtime.h"

namespace tandem::kernels::cuda {
namespace {

float At(const GemmParams& p, const void* matrix, size_t index) {
  if (p.type == GemmParams::Type::kF32) return static_cast<const float*>(matrix)[index];
  const uint16_t bits = static_cast<const uint16_t*>(matrix)[index];
  return p.type == GemmParams::Type::kF16 ? tensor::HalfToFloat(bits) : tensor::Bf16ToFloat(bits);
}

void Multiply(const GemmParams& p) {
  std::vector<float> row(p.k);
  for (size_t j = 0; j < p.n; ++j) {
    for (size_t k = 0; k < p.k; ++k) row[k] = At(p, p.b, j * p.b_stride + k);
    for (size_t i = 0; i < p.m; ++i) {
      float sum = 0;
      for (size_t k = 0; k < p.k; ++k) sum += At(p, p.a, i * p.a_stride + k) * row[k];
      p.c[i * p.c_stride + j] = sum;
    }
  }
}

class PlainGemm : public DenseGemm {
 public:
  void Encode(Stream& stream, const GemmParams& params) override {
    if (stream.planning() || !stream.error().empty()) return;
    stream.Note(emulation::Enqueue(stream.handle(),
                                   [params] {
                                     Multiply(params);
                                     return cudaSuccess;
                                   }),
                "gemm");
  }
  uint64_t workspace_bytes() const override { return 0; }
};

}  // namespace

absl::StatusOr<std::unique_ptr<DenseGemm>> MakeDenseGemm() { return std::make_unique<PlainGemm>(); }

}  // namespace tandem::kernels::cuda
