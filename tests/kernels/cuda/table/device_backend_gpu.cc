#include "kernels/cuda/backend.h"
#include "tests/kernels/cuda/table/device_backend.h"

namespace tandem::kernels {

absl::StatusOr<std::unique_ptr<Backend>> MakeDeviceBackend() { return cuda::MakeCudaBackend(0); }

}  // namespace tandem::kernels
