#include "tools/cuda_emulation/emulated_backend.h"

#include "common/base/status.h"
#include "kernels/cuda/cuda_backend.h"

namespace tandem::kernels::cuda {

absl::StatusOr<std::unique_ptr<Backend>> MakeEmulatedBackend() {
  auto backend = std::make_unique<CudaBackend>("cuda-emulated");
  TANDEM_RETURN_IF_ERROR(backend->Open());
  return backend;
}

}  // namespace tandem::kernels::cuda
