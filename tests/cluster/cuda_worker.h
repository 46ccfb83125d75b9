// The worker program that runs ranks on the CUDA backend in this build: the emulated one, or the
// real one.
#ifndef TANDEM_TESTS_CLUSTER_CUDA_WORKER_H_
#define TANDEM_TESTS_CLUSTER_CUDA_WORKER_H_

#include <string>

namespace tandem::testing {

struct CudaWorker {
  std::string binary;
  // Why `ranks` of them can't run here; empty: they can.
  std::string missing;
};
CudaWorker FindCudaWorker(int ranks);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_CLUSTER_CUDA_WORKER_H_
