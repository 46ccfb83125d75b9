// WeightUpload: weights from the mapped file to the device, through two page-locked buffers, so
// that host memory stays small whatever the model, and reading the file runs beside the copy.
//
// One thread; synchronises with its stream.
#ifndef TANDEM_KERNELS_CUDA_WEIGHT_UPLOAD_H_
#define TANDEM_KERNELS_CUDA_WEIGHT_UPLOAD_H_

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace tandem::kernels::cuda {

class WeightUpload {
 public:
  explicit WeightUpload(cudaStream_t stream) : stream_(stream) {}
  ~WeightUpload();
  WeightUpload(const WeightUpload&) = delete;
  WeightUpload& operator=(const WeightUpload&) = delete;

  // The weight in device memory of its own, which goes to `memory`: rows padded to a multiple of 16
  // bytes, matrices one behind the other.
  absl::StatusOr<Weight> Place(const Weight& host, Buffer& memory);
  // Told what has been read of a weight, part by part; see WeightCopy::OnCopied.
  void OnCopied(std::function<void(std::span<const std::byte> part)> copied) {
    copied_ = std::move(copied);
  }

 private:
  // One half of the ring; `copied` is behind its last copy.
  struct Stage {
    Buffer buffer{};
    cudaEvent_t copied = nullptr;
  };

  absl::Status Prepare();
  // Sends `filled` bytes of the present stage to `to` and turns to the other stage.
  absl::Status Send(std::byte* to, size_t filled);

  const cudaStream_t stream_;
  std::array<Stage, 2> stages_;
  size_t present_ = 0;
  std::function<void(std::span<const std::byte> part)> copied_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_WEIGHT_UPLOAD_H_
