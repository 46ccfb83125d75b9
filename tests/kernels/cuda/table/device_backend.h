// The device that benchmarks run on in this build: GPU 0, or the emulated one.
#ifndef TANDEM_TESTS_KERNELS_CUDA_TABLE_DEVICE_BACKEND_H_
#define TANDEM_TESTS_KERNELS_CUDA_TABLE_DEVICE_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace tandem::kernels {

absl::StatusOr<std::unique_ptr<Backend>> MakeDeviceBackend();

}  // namespace tandem::kernels

#endif  // TANDEM_TESTS_KERNELS_CUDA_TABLE_DEVICE_BACKEND_H_
