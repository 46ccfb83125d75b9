// TANDEM_CUBLAS_RETURN_IF_ERROR: a cuBLAS call whose failure becomes an absl::Status that names
// file, line, the call and cuBLAS's error.
#ifndef TANDEM_KERNELS_CUDA_CUBLAS_CHECK_H_
#define TANDEM_KERNELS_CUDA_CUBLAS_CHECK_H_

#include <cublasLt.h>

#include "absl/status/status.h"

namespace tandem::kernels::cuda {

// OK for CUBLAS_STATUS_SUCCESS; RESOURCE_EXHAUSTED if out of memory, UNIMPLEMENTED for what the
// device does not support, INTERNAL otherwise.
absl::Status CublasStatus(cublasStatus_t status, const char* call, const char* file, int line);

}  // namespace tandem::kernels::cuda

#define TANDEM_CUBLAS_STATUS(call) \
  ::tandem::kernels::cuda::CublasStatus((call), #call, __FILE__, __LINE__)

#define TANDEM_CUBLAS_RETURN_IF_ERROR(call)                                           \
  do {                                                                                \
    if (absl::Status cublas_status = TANDEM_CUBLAS_STATUS(call); !cublas_status.ok()) \
      return cublas_status;                                                           \
  } while (false)

#endif  // TANDEM_KERNELS_CUDA_CUBLAS_CHECK_H_
