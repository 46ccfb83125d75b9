#include "kernels/cuda/backend.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/device_info.h"

namespace tandem::kernels::cuda {
namespace {

absl::Status CheckDevice(const CudaInfo& info, int index) {
  const auto count = static_cast<int>(info.devices.size());
  if (index < 0 || index >= count) {
    return absl::UnavailableError(absl::StrCat("device 'cuda': this rank needs GPU ", index,
                                               ", but this process sees only ", count));
  }
  const CudaDevice& device = info.devices[static_cast<size_t>(index)];
  if (device.major < kOldestMajor) {
    return absl::UnavailableError(
        absl::StrCat("device 'cuda': GPU ", index, " (", device.name, ") has compute capability ",
                     device.major, ".", device.minor, ", needed is ", kOldestMajor, ".0 or newer"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(const BackendOptions& options) {
  absl::StatusOr<CudaInfo> info = QueryCuda();
  if (!info.ok()) return Annotate(info.status(), "device 'cuda'");
  TANDEM_RETURN_IF_ERROR(CheckDevice(*info, options.device_index));
  TANDEM_CUDA_RETURN_IF_ERROR(cudaSetDevice(options.device_index));
  auto backend = std::make_unique<CudaBackend>("cuda");
  TANDEM_RETURN_IF_ERROR(backend->Open());
  return backend;
}

}  // namespace tandem::kernels::cuda
