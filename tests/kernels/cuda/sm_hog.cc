#include "tests/kernels/cuda/sm_hog.h"

#include <future>
#include <utility>

namespace tandem::kernels::cuda {

std::string SmHog::Start() {
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) {
    return cudaGetErrorString(error);
  }
  std::promise<std::string> prepared;
  std::future<std::string> error = prepared.get_future();
  thread_ = std::thread([this, device, prepared = std::move(prepared)]() mutable {
    const std::string failure = Prepare(device);
    prepared.set_value(failure);
    if (failure.empty()) Loop();
  });
  return error.get();
}

// On the thread that uses the stream: under emulation a stream belongs to the thread that creates
// it, and others that free memory do not run its work.
std::string SmHog::Prepare(int device) {
  for (const cudaError_t error :
       {cudaSetDevice(device), stream_.Create(), cudaMalloc(&out_, sizeof(unsigned))}) {
    if (error != cudaSuccess) return cudaGetErrorString(error);
  }
  stream_.Begin(/*planning=*/false);
  return "";
}

void SmHog::Loop() {
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
