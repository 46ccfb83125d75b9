// SmHog: keeps half of the multiprocessors busy, by kernels on a separate thread and stream.
#ifndef TANDEM_TESTS_KERNELS_CUDA_SM_HOG_H_
#define TANDEM_TESTS_KERNELS_CUDA_SM_HOG_H_

#include <atomic>
#include <string>
#include <thread>

#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

// One launch, of about a millisecond on a GPU; `out`, an unsigned, is written only in theory.
void EncodeHog(Stream& stream, void* out);

class SmHog {
 public:
  SmHog() = default;
  ~SmHog();
  SmHog(const SmHog&) = delete;
  SmHog& operator=(const SmHog&) = delete;

  // On the current device. The error, or "".
  std::string Start();

 private:
  // The error, or "".
  std::string Prepare(int device);
  void Loop();

  Stream stream_;
  void* out_ = nullptr;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_TESTS_KERNELS_CUDA_SM_HOG_H_
