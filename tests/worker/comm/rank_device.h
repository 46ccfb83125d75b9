// The device of a rank in tests of NCCL: a GPU, or an emulated one.
#ifndef TANDEM_TESTS_WORKER_COMM_RANK_DEVICE_H_
#define TANDEM_TESTS_WORKER_COMM_RANK_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace tandem::worker {

// Whether there is any, for this process.
bool HaveDevice();
// Several ranks may have to share a device; then each says that it is another host, because NCCL
// refuses two ranks of one host on one GPU.
absl::StatusOr<std::unique_ptr<kernels::Backend>> MakeRankBackend(int rank, int ranks);

}  // namespace tandem::worker

#endif  // TANDEM_TESTS_WORKER_COMM_RANK_DEVICE_H_
