#include "tests/kernels/cuda/table/timer.h"

#include "kernels/cuda/check.h"

namespace tandem::kernels::cuda {

Timer::~Timer() {
  if (begin_ != nullptr) cudaEventDestroy(begin_);
  if (end_ != nullptr) cudaEventDestroy(end_);
}

absl::Status Timer::Open() {
  TANDEM_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&begin_, cudaEventDefault));
  TANDEM_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&end_, cudaEventDefault));
  return absl::OkStatus();
}

absl::Status Timer::Start() { return TANDEM_CUDA_STATUS(cudaEventRecord(begin_, stream_)); }
absl::Status Timer::Stop() { return TANDEM_CUDA_STATUS(cudaEventRecord(end_, stream_)); }

absl::StatusOr<double> Timer::Seconds() {
  float milliseconds = 0;
  TANDEM_CUDA_RETURN_IF_ERROR(cudaEventSynchronize(end_));
  TANDEM_CUDA_RETURN_IF_ERROR(cudaEventElapsedTime(&milliseconds, begin_, end_));
  return milliseconds * 1e-3;
}

}  // namespace tandem::kernels::cuda
