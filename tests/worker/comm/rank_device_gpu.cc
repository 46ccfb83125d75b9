#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/backend.h"
#include "kernels/cuda/device_info.h"
#include "tests/worker/comm/rank_device.h"

namespace tandem::worker {

bool HaveDevice() { return kernels::QueryCuda().ok(); }

absl::StatusOr<std::unique_ptr<kernels::Backend>> MakeRankBackend(int rank, int ranks) {
  const int gpus = static_cast<int>(kernels::QueryCuda()->devices.size());
  if (gpus < ranks) {
    setenv("NCCL_HOSTID", absl::StrCat("tandem-rank-", rank).c_str(), 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  }
  return kernels::cuda::MakeCudaBackend(rank % gpus);
}

}  // namespace tandem::worker
