// Source: Zhang and Sennrich, "Root mean square layer normalization", 2019.
// Floor: reads residual (and add) and writes residual and out once: 8 bytes per value without add,
// 16 with.
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/ops/ops.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kSmallThreads = 64;  // for rows of a head

__global__ void RmsNormKernel(const RmsNormParams p) {
  SharedArena arena;
  const SharedArray<float> room = arena.Take<float>(kBlockReduceRoom);
  const size_t begin = static_cast<size_t>(blockIdx.x) * p.dim;
  float* const residual = p.residual + begin;
  float squares = 0;
  for (uint32_t i = threadIdx.x; i < p.dim; i += blockDim.x) {
    float value = residual[i];
    if (p.add != nullptr) {
      value += p.add[begin + i];
      residual[i] = value;
    }
    squares += value * value;
  }
  const float mean = BlockSum(squares, room) / static_cast<float>(p.dim);
  const float scale = 1.0f / sqrtf(mean + p.epsilon);
  const uint32_t stride = p.out_stride == 0 ? p.dim : p.out_stride;
  float* const out = p.out + static_cast<size_t>(blockIdx.x) * stride;
  for (uint32_t i = threadIdx.x; i < p.dim; i += blockDim.x) {
    out[i] = residual[i] * scale * p.weight[i];
  }
}

}  // namespace

void EncodeRmsNorm(Stream& stream, const RmsNormParams& params) {
  const uint32_t threads = params.dim <= 256 ? kSmallThreads : kThreads;
  stream.Launch("rms_norm", &RmsNormKernel, params.rows, threads,
                SharedBytes<float>(kBlockReduceRoom), params);
}

}  // namespace tandem::kernels::cuda
