// Description of this machine's CUDA devices and versions, one line per device.
//
// `device_info` also proves that cudart and cuBLASLt link: it prints their versions.
#ifndef TANDEM_KERNELS_CUDA_DEVICE_INFO_H_
#define TANDEM_KERNELS_CUDA_DEVICE_INFO_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tandem::kernels {

struct CudaDevice {
  std::string name;
  int major = 0;  // Compute capability.
  int minor = 0;
  size_t memory_bytes = 0;

  friend bool operator==(const CudaDevice&, const CudaDevice&) = default;
};

struct CudaInfo {
  int driver_version = 0;   // 1000 * major + 10 * minor.
  int runtime_version = 0;  // The same.
  size_t cublaslt_version = 0;
  std::vector<CudaDevice> devices;
};

// UNAVAILABLE if there is no driver or no device.
absl::StatusOr<CudaInfo> QueryCuda();

// The oldest compute capability that kernels are built for: this major number, minor 0.
inline constexpr int kOldestCudaMajor = 8;
// UNAVAILABLE, in one line with both numbers, if device `index` is missing or too old.
absl::Status CheckCudaDevice(const CudaInfo& info, int index);

// One line per device, then one with versions; each ends in a newline.
std::string FormatCuda(const CudaInfo& info);

}  // namespace tandem::kernels

#endif  // TANDEM_KERNELS_CUDA_DEVICE_INFO_H_
