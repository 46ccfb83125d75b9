#include "tests/kernels/cuda/sm_hog.h"

namespace tandem::kernels::cuda {

std::string SmHog::Start() {
  int device = 0;
  for (const cudaError_t error :
       {cudaGetDevice(&device), stream_.Create(), cudaMalloc(&out_, sizeof(unsigned))}) {
    if (error != cudaSuccess) return cudaGetErrorString(error);
  }
  stream_.Begin(/*planning=*/false);
  thread_ = std::thread([this, device] { Loop(device); });
  return "";
}

void SmHog::Loop(int device) {
  if (cudaSetDevice(device) != cudaSuccess) return;
  while (!stop_) {
    EncodeHog(stream_, out_);
    if (cudaStreamSynchronize(stream_.handle()) != cudaSuccess) return;
  }
}

SmHog::~SmHog() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  cudaFree(out_);
}

}  // namespace tandem::kernels::cuda
