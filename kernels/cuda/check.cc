#include "kernels/cuda/check.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace tandem::kernels::cuda {
namespace {

// By name: the emulated toolkit does not define them all.
absl::StatusCode CodeOf(cudaError_t error) {
  const std::string name = cudaGetErrorName(error);
  if (name == "cudaErrorMemoryAllocation") return absl::StatusCode::kResourceExhausted;
  for (const char* absent : {"cudaErrorNoDevice", "cudaErrorInsufficientDriver",
                             "cudaErrorInvalidDevice", "cudaErrorSystemDriverMismatch",
                             "cudaErrorNoKernelImageForDevice", "cudaErrorDevicesUnavailable"}) {
    if (name == absent) return absl::StatusCode::kUnavailable;
  }
  return absl::StatusCode::kInternal;
}

}  // namespace

absl::Status CudaStatus(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::Status(CodeOf(error),
                      absl::StrCat(file, ":", line, ": ", call, ": ", cudaGetErrorName(error), ": ",
                                   cudaGetErrorString(error)));
}

}  // namespace tandem::kernels::cuda
