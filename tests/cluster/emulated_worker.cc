// A worker whose device "cuda" is the CUDA backend under emulation, so that its kernels, graphs and
// collectives run in real worker processes on any machine.
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/factory.h"
#include "tools/cuda_emulation/emulated_backend.h"
#include "worker/comm/nccl_communicator.h"
#include "worker/control/worker_main.h"

namespace {

constexpr int kDevices = 8;

absl::StatusOr<std::unique_ptr<tandem::kernels::Backend>> MakeDevice(int index) {
  if (index < kDevices) return tandem::kernels::cuda::MakeEmulatedBackend();
  return absl::UnavailableError(
      absl::StrCat("this rank needs GPU ", index, ", but this process sees only ", kDevices));
}

}  // namespace

int main(int argc, char** argv) {
  tandem::kernels::RegisterCuda(&MakeDevice);
  tandem::worker::RegisterNcclCommunicator();
  return tandem::worker::WorkerMain(argc, argv);
}
