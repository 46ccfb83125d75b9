// A worker whose device "cuda" is the CUDA backend under emulation, so that its kernels, graphs and
// collectives run in real worker processes on any machine.
#include "kernels/factory.h"
#include "tools/cuda_emulation/emulated_backend.h"
#include "worker/comm/nccl_communicator.h"
#include "worker/control/worker_main.h"

int main(int argc, char** argv) {
  tandem::kernels::RegisterCuda([](int) { return tandem::kernels::cuda::MakeEmulatedBackend(); });
  tandem::worker::RegisterNcclCommunicator();
  return tandem::worker::WorkerMain(argc, argv);
}
