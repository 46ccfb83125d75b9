#include "kernels/cuda/device_info.h"

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tandem::kernels {
namespace {

absl::Status CudaError(const char* call, cudaError_t error) {
  return absl::UnavailableError(absl::StrCat(call, ": ", cudaGetErrorString(error)));
}

// "13.0" for 13000.
std::string CudaVersion(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

absl::StatusOr<CudaDevice> QueryDevice(int index) {
  cudaDeviceProp properties;
  if (cudaError_t error = cudaGetDeviceProperties(&properties, index); error != cudaSuccess) {
    return CudaError("cudaGetDeviceProperties", error);
  }
  return CudaDevice{.name = properties.name,
                    .major = properties.major,
                    .minor = properties.minor,
                    .memory_bytes = properties.totalGlobalMem};
}

}  // namespace

absl::StatusOr<CudaInfo> QueryCuda() {
  CudaInfo info;
  if (cudaError_t error = cudaDriverGetVersion(&info.driver_version); error != cudaSuccess) {
    return CudaError("cudaDriverGetVersion", error);
  }
  if (info.driver_version == 0) return absl::UnavailableError("no CUDA driver is installed");
  int count = 0;
  if (cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    return CudaError("cudaGetDeviceCount", error);
  }
  if (count == 0) return absl::UnavailableError("the CUDA driver sees no device");
  for (int index = 0; index < count; ++index) {
    absl::StatusOr<CudaDevice> device = QueryDevice(index);
    if (!device.ok()) return device.status();
    info.devices.push_back(*std::move(device));
  }
  if (cudaError_t error = cudaRuntimeGetVersion(&info.runtime_version); error != cudaSuccess) {
    return CudaError("cudaRuntimeGetVersion", error);
  }
  info.cublaslt_version = cublasLtGetVersion();
  return info;
}

absl::Status CheckCudaDevice(const CudaInfo& info, int index) {
  const auto count = static_cast<int>(info.devices.size());
  if (index < 0 || index >= count) {
    return absl::UnavailableError(absl::StrCat("device 'cuda': this rank needs GPU ", index,
                                               ", but this process sees only ", count));
  }
  const CudaDevice& device = info.devices[static_cast<size_t>(index)];
  if (device.major < kOldestCudaMajor) {
    return absl::UnavailableError(absl::StrCat(
        "device 'cuda': GPU ", index, " (", device.name, ") has compute capability ", device.major,
        ".", device.minor, ", needed is ", kOldestCudaMajor, ".0 or newer"));
  }
  return absl::OkStatus();
}

std::string FormatCuda(const CudaInfo& info) {
  std::string text;
  for (size_t i = 0; i < info.devices.size(); ++i) {
    const CudaDevice& device = info.devices[i];
    absl::StrAppendFormat(&text, "device %d: %s, compute capability %d.%d, %.1f GiB\n", i,
                          device.name, device.major, device.minor,
                          static_cast<double>(device.memory_bytes) / (1 << 30));
  }
  absl::StrAppendFormat(&text, "driver for CUDA %s, runtime %s, cuBLASLt %d\n",
                        CudaVersion(info.driver_version), CudaVersion(info.runtime_version),
                        info.cublaslt_version);
  return text;
}

}  // namespace tandem::kernels
