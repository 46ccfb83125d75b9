// tandem_worker_cuda: one rank, on a GPU or on the CPU.
#include <string>

#include "absl/strings/str_format.h"
#include "kernels/cuda/backend.h"
#include "kernels/cuda/device_info.h"
#include "kernels/factory.h"
#include "worker/comm/nccl_communicator.h"
#include "worker/control/worker_main.h"

namespace {

// "NVIDIA H100 80GB HBM3 (79.1 GiB)", one name per GPU visible to this process.
std::string GpuNames() {
  const auto info = tandem::kernels::QueryCuda();
  if (!info.ok()) return "";
  std::string names;
  for (const auto& device : info->devices) {
    absl::StrAppendFormat(&names, "%s%s (%.1f GiB)", names.empty() ? "" : ", ", device.name,
                          static_cast<double>(device.memory_bytes) / (1 << 30));
  }
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  tandem::kernels::RegisterCuda(&tandem::kernels::cuda::MakeCudaBackend);
  tandem::worker::RegisterNcclCommunicator();
  return tandem::worker::WorkerMain(argc, argv, &GpuNames);
}
