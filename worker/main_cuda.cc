// tandem_worker_cuda: one rank, on a GPU or on the CPU.
#include "kernels/cuda/backend.h"
#include "kernels/factory.h"
#include "worker/comm/nccl_communicator.h"
#include "worker/life/worker_main.h"

int main(int argc, char** argv) {
  tandem::kernels::RegisterCuda(&tandem::kernels::cuda::MakeCudaBackend);
  tandem::worker::RegisterNcclCommunicator();
  return tandem::worker::WorkerMain(argc, argv);
}
