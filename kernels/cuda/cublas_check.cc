#include "kernels/cuda/cublas_check.h"

#include "absl/strings/str_cat.h"

namespace tandem::kernels::cuda {
namespace {

absl::StatusCode CodeOf(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED:
      return absl::StatusCode::kResourceExhausted;
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return absl::StatusCode::kUnimplemented;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status CublasStatus(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::Status(CodeOf(status),
                      absl::StrCat(file, ":", line, ": ", call, ": ", cublasLtGetStatusName(status),
                                   ": ", cublasLtGetStatusString(status)));
}

}  // namespace tandem::kernels::cuda
