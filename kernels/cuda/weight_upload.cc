#include "kernels/cuda/weight_upload.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "common/tensor/type.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/pack_rows.h"

namespace tandem::kernels::cuda {
namespace {

constexpr size_t kStageBytes = size_t{16} << 20;
static_assert(kStageBytes >= RowPacker::kMaxPackBytes);

}  // namespace

WeightUpload::~WeightUpload() {
  for (Stage& stage : stages_) {
    if (stage.copied != nullptr) cudaEventDestroy(stage.copied);
  }
}

absl::Status WeightUpload::Prepare() {
  for (Stage& stage : stages_) {
    if (stage.copied != nullptr) continue;
    TANDEM_ASSIGN_OR_RETURN(stage.buffer, AllocatePinned(kStageBytes));
    TANDEM_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&stage.copied, cudaEventDisableTiming));
  }
  return absl::OkStatus();
}

absl::Status WeightUpload::Send(std::byte* to, size_t filled) {
  Stage& stage = stages_[present_];
  TANDEM_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(to, stage.buffer.data(), filled, cudaMemcpyHostToDevice, stream_));
  TANDEM_CUDA_RETURN_IF_ERROR(cudaEventRecord(stage.copied, stream_));
  present_ = 1 - present_;
  TANDEM_CUDA_RETURN_IF_ERROR(cudaEventSynchronize(stages_[present_].copied));
  return absl::OkStatus();
}

uint64_t WeightUpload::PlacedBytes(const Weight& weight) {
  return RowPacker(weight.type, weight.cols).row_bytes() * weight.rows * weight.count;
}

absl::StatusOr<Weight> WeightUpload::Place(const Weight& host, Buffer& memory) {
  const RowPacker packer(host.type, host.cols);
  if (host.scales != nullptr && !packer.has_scale()) {
    return absl::UnimplementedError(absl::StrCat("a scale of a ", Sv(tensor::Name(host.type)),
                                                 " weight is not supported on a GPU"));
  }
  TANDEM_RETURN_IF_ERROR(Prepare());
  Weight placed = host;
  placed.row_stride_bytes = packer.row_bytes();
  placed.matrix_stride_bytes = placed.row_stride_bytes * host.rows;
  TANDEM_ASSIGN_OR_RETURN(memory, AllocateDevice(PlacedBytes(host)));
  placed.data = memory.data();
  placed.scales = nullptr;  // packs have them

  std::byte* to = memory.data();
  size_t filled = 0;
  const auto* unread = static_cast<const std::byte*>(host.data);  // by copied_
  for (uint64_t row = 0; row < uint64_t{host.rows} * host.count; ++row) {
    const auto matrix = static_cast<uint32_t>(row / host.rows);
    const auto* from = static_cast<const std::byte*>(host.data) +
                       matrix * host.matrix_stride_bytes + row % host.rows * host.row_stride_bytes;
    // A row may be longer than a stage.
    for (uint64_t at = 0;;) {
      std::byte* const stage = stages_[present_].buffer.data() + filled;
      const size_t packed = packer.Write(from, at, stage, kStageBytes - filled, host.scale(matrix));
      at += packed;
      filled += packed;
      if (at == placed.row_stride_bytes) break;
      TANDEM_RETURN_IF_ERROR(Send(to, filled));
      to += std::exchange(filled, 0);
      // Keeps the row that is being read.
      if (copied_) copied_({unread, from});
      unread = from;
    }
  }
  if (filled > 0) TANDEM_RETURN_IF_ERROR(Send(to, filled));
  TANDEM_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_));
  return placed;
}

}  // namespace tandem::kernels::cuda
