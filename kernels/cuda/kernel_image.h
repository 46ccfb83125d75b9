// Whether this build has kernels for a GPU: machine code of its architecture, or PTX that the
// driver can compile.
#ifndef TANDEM_KERNELS_CUDA_KERNEL_IMAGE_H_
#define TANDEM_KERNELS_CUDA_KERNEL_IMAGE_H_

#include <cuda_runtime.h>

#include <vector>

#include "absl/status/status.h"

namespace tandem::kernels::cuda {

// Asks for a kernel's code on the current device: OK, or UNAVAILABLE in one line with the device's
// compute capability and the build's. So a wrong build fails at its start and not at its first
// launch, when a model is loaded.
absl::Status CheckKernelImage();

// What became of asking for it, and the architectures that kernels were compiled for, as 800 or
// 900.
struct KernelImage {
  cudaError_t error = cudaSuccess;
  std::vector<int> built_for;
};
KernelImage ProbeKernelImage();

absl::Status StatusOf(const KernelImage& image, const cudaDeviceProp& device);

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_KERNEL_IMAGE_H_
