// Timer: how long a stream's work between two points took on the device, measured with CUDA events.
//
//   timer.Start(); ...work goes to the stream...; timer.Stop(); ...wait for the stream...;
//   timer.Seconds()
//
// Start and Stop only enqueue. One thread; the stream outlives the timer. For benchmarks.
#ifndef TANDEM_TESTS_KERNELS_CUDA_TABLE_TIMER_H_
#define TANDEM_TESTS_KERNELS_CUDA_TABLE_TIMER_H_

#include <cuda_runtime.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tandem::kernels::cuda {

class Timer {
 public:
  explicit Timer(cudaStream_t stream) : stream_(stream) {}
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  absl::Status Open();
  absl::Status Start();
  absl::Status Stop();
  // Waits for the event recorded by Stop.
  absl::StatusOr<double> Seconds();

 private:
  const cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_TESTS_KERNELS_CUDA_TABLE_TIMER_H_
