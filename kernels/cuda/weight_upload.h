// WeightUpload: weights from the mapped file to the device, through two page-locked buffers, so
// that host memory use is independent of the model, and reading the file overlaps with the copy.
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

  // Device memory that a weight takes.
  static uint64_t PlacedBytes(const Weight& weight);
  // Copies the weight to newly allocated device memory, `memory`: rows in the form of pack_rows.h,
  // with their matrix's scale, matrices contiguous. UNIMPLEMENTED for scales of a type whose packs
  // have no place for them.
  absl::StatusOr<Weight> Place(const Weight& host, Buffer& memory);
  // Called with each part of a weight that has been read; see WeightCopy::OnCopied.
  void OnCopied(std::function<void(std::span<const std::byte> part)> copied) {
    copied_ = std::move(copied);
  }

 private:
  // One half of the ring; `copied` is recorded after its last copy.
  struct Stage {
    Buffer buffer{};
    cudaEvent_t copied = nullptr;
  };

  absl::Status Prepare();
  // Copies `filled` bytes of the current stage to `to` and switches to the other stage.
  absl::Status Send(std::byte* to, size_t filled);

  const cudaStream_t stream_;
  std::array<Stage, 2> stages_;
  size_t present_ = 0;
  std::function<void(std::span<const std::byte> part)> copied_;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_WEIGHT_UPLOAD_H_
