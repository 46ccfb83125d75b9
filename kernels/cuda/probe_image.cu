// A kernel that is never launched, only asked for.
// Floor: nothing.
#include "kernels/cuda/kernel_image.h"

namespace tandem::kernels::cuda {
namespace {

struct Nothing {};

__global__ void ProbeKernel(const Nothing) {}

}  // namespace

KernelImage ProbeKernelImage() {
  cudaFuncAttributes attributes;
  KernelImage image{.error = cudaFuncGetAttributes(&attributes, &ProbeKernel), .built_for = {}};
  // Defined by nvcc, so not under emulation.
#ifdef __CUDA_ARCH_LIST__
  image.built_for = {__CUDA_ARCH_LIST__};
#endif
  return image;
}

}  // namespace tandem::kernels::cuda
