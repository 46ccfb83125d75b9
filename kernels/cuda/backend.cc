#include "kernels/cuda/backend.h"

#include "common/base/status.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/device_info.h"
#include "kernels/cuda/kernel_image.h"

namespace tandem::kernels::cuda {
absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(int device_index) {
  absl::StatusOr<CudaInfo> info = QueryCuda();
  if (!info.ok()) return Annotate(info.status(), "device 'cuda'");
  TANDEM_RETURN_IF_ERROR(CheckCudaDevice(*info, device_index));
  TANDEM_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_index));
  TANDEM_RETURN_IF_ERROR(CheckKernelImage());
  auto backend = std::make_unique<CudaBackend>("cuda");
  TANDEM_RETURN_IF_ERROR(backend->Open());
  return backend;
}

}  // namespace tandem::kernels::cuda
