// TANDEM_TEST_CUDA_WORKER may name a program that lets ranks share a GPU.
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device_info.h"
#include "tests/cluster/cuda_worker.h"

namespace tandem::testing {

CudaWorker FindCudaWorker(int ranks) {
  CudaWorker worker{.binary = "worker/tandem_worker_cuda", .missing = ""};
  const auto info = kernels::QueryCuda();
  if (!info.ok()) {
    worker.missing = absl::StrCat("no GPU: ", info.status().message());
  } else if (const char* sharing = std::getenv("TANDEM_TEST_CUDA_WORKER"); sharing != nullptr) {
    worker.binary = sharing;
  } else if (static_cast<int>(info->devices.size()) < ranks) {
    worker.missing =
        absl::StrCat(ranks, " ranks need as many GPUs, here are ", info->devices.size());
  }
  return worker;
}

}  // namespace tandem::testing
