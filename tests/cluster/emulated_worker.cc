// A worker whose device "cuda" is the CUDA backend under emulation, so that its kernels run in real
// worker processes on any machine. Ranks reduce over shared memory, as on the CPU.
#include "kernels/factory.h"
#include "tools/cuda_emulation/emulated_backend.h"
#include "worker/control/worker_main.h"

int main(int argc, char** argv) {
  tandem::kernels::RegisterCuda([](int) { return tandem::kernels::cuda::MakeEmulatedBackend(); });
  return tandem::worker::WorkerMain(argc, argv);
}
