#include "kernels/cuda/kernel_image.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/cuda/check.h"

namespace tandem::kernels::cuda {

absl::Status StatusOf(const KernelImage& image, const cudaDeviceProp& device) {
  if (image.error == cudaSuccess) return absl::OkStatus();
  const auto name = [](std::string* out, int arch) {
    absl::StrAppend(out, arch / 100, ".", arch % 100 / 10);
  };
  return absl::UnavailableError(absl::StrCat(
      "device 'cuda': ", device.name, " has compute capability ", device.major, ".", device.minor,
      ", this build has kernels for ", absl::StrJoin(image.built_for, ", ", name), " (",
      cudaGetErrorString(image.error), "): build with --config=cuda, for all"));
}

absl::Status CheckKernelImage() {
  int index = 0;
  TANDEM_CUDA_RETURN_IF_ERROR(cudaGetDevice(&index));
  cudaDeviceProp device;
  TANDEM_CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties(&device, index));
  return StatusOf(ProbeKernelImage(), device);
}

}  // namespace tandem::kernels::cuda
