#include "kernels/cuda/memory.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/check.h"

namespace tandem::kernels::cuda {

absl::StatusOr<Buffer> AllocateDevice(size_t bytes) {
  void* data = nullptr;
  const absl::Status status = TANDEM_CUDA_STATUS(cudaMalloc(&data, std::max<size_t>(bytes, 1)));
  if (absl::IsResourceExhausted(status)) {
    size_t free_bytes = 0, total_bytes = 0;
    TANDEM_CUDA_RETURN_IF_ERROR(cudaMemGetInfo(&free_bytes, &total_bytes));
    return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", bytes,
                                                     " bytes of device memory: ", free_bytes,
                                                     " of ", total_bytes, " are free"));
  }
  if (!status.ok()) return status;
  return Buffer(data, bytes, [](void* p) { cudaFree(p); });
}

absl::StatusOr<Buffer> AllocatePinned(size_t bytes) {
  void* data = nullptr;
  TANDEM_CUDA_RETURN_IF_ERROR(
      cudaHostAlloc(&data, std::max<size_t>(bytes, 1), cudaHostAllocDefault));
  std::memset(data, 0, bytes);
  return Buffer(data, bytes, [](void* p) { cudaFreeHost(p); });
}

}  // namespace tandem::kernels::cuda
