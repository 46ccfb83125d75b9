#include "tests/kernels/cuda/table/device_backend.h"
#include "tools/cuda_emulation/emulated_backend.h"

namespace tandem::kernels {

absl::StatusOr<std::unique_ptr<Backend>> MakeDeviceBackend() { return cuda::MakeEmulatedBackend(); }

}  // namespace tandem::kernels
