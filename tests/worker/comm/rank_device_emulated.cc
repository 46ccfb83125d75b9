#include "tests/worker/comm/rank_device.h"
#include "tools/cuda_emulation/emulated_backend.h"

namespace tandem::worker {

bool HaveDevice() { return true; }

absl::StatusOr<std::unique_ptr<kernels::Backend>> MakeRankBackend(int, int) {
  return kernels::cuda::MakeEmulatedBackend();
}

}  // namespace tandem::worker
