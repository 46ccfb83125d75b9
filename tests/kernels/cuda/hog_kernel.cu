#include <cuda_runtime.h>

#include "tests/kernels/cuda/sm_hog.h"

namespace tandem::kernels::cuda {
namespace {

#ifdef TANDEM_CUDA_EMULATION
constexpr uint32_t kThreads = 32;
constexpr uint32_t kRounds = 100;
#else
constexpr uint32_t kThreads = 1024;
constexpr uint32_t kRounds = 200000;
#endif

struct HogTask {
  unsigned* out;
  uint32_t rounds;
};

__global__ void __launch_bounds__(kThreads) HogKernel(const HogTask task) {
  unsigned value = threadIdx.x;
  for (uint32_t i = 0; i < task.rounds; ++i) value = value * 1664525u + 1013904223u + i;
  // So that the compiler keeps the loop.
  if (value == 0x9e3779b9u) *task.out = value;
}

}  // namespace

void EncodeHog(Stream& stream, void* out) {
  const uint32_t half = (stream.multiprocessors() + 1) / 2;
  stream.Launch("hog", &HogKernel, half, kThreads, 0, {static_cast<unsigned*>(out), kRounds});
}

}  // namespace tandem::kernels::cuda
