// TANDEM_CUDA_RETURN_IF_ERROR: a CUDA call whose failure becomes an absl::Status that names file,
// line, the call and CUDA's error.
#ifndef TANDEM_KERNELS_CUDA_CHECK_H_
#define TANDEM_KERNELS_CUDA_CHECK_H_

#include <cuda_runtime.h>

#include "absl/status/status.h"

namespace tandem::kernels::cuda {

// OK for cudaSuccess; RESOURCE_EXHAUSTED if out of memory, UNAVAILABLE if there is no usable device
// or driver, INTERNAL otherwise.
absl::Status CudaStatus(cudaError_t error, const char* call, const char* file, int line);

}  // namespace tandem::kernels::cuda

#define TANDEM_CUDA_STATUS(call) \
  ::tandem::kernels::cuda::CudaStatus((call), #call, __FILE__, __LINE__)

#define TANDEM_CUDA_RETURN_IF_ERROR(call)                                       \
  do {                                                                          \
    if (absl::Status cuda_status = TANDEM_CUDA_STATUS(call); !cuda_status.ok()) \
      return cuda_status;                                                       \
  } while (false)

#endif  // TANDEM_KERNELS_CUDA_CHECK_H_
