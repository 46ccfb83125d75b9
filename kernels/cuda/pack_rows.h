// RowPacker: rows of a weight from their form in the file to that in device memory: packs
// (device/packs.h) of a block-quantised type, else the values and zeros up to a multiple of 16
// bytes.
#ifndef TANDEM_KERNELS_CUDA_PACK_ROWS_H_
#define TANDEM_KERNELS_CUDA_PACK_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "common/tensor/type.h"

namespace tandem::kernels::cuda {

class RowPacker {
 public:
  RowPacker(tensor::Type type, uint32_t cols);

  // Of a row in device memory: a multiple of 16.
  uint64_t row_bytes() const { return row_bytes_; }
  // Whether there is a place in it for the scale of its matrix.
  bool has_scale() const { return has_scale_; }

  // Writes of `row`, a row of the file, the bytes that device memory has from `at` on, as many as
  // fit in `room`, but no part of a pack; returns how many. `at`: 0, or what earlier calls have
  // written of the row. A room of kMaxPackBytes is enough to go on. `scale`: of the row's matrix,
  // written if has_scale().
  size_t Write(const std::byte* row, uint64_t at, std::byte* to, size_t room,
               float scale = 1.0f) const;
  static constexpr size_t kMaxPackBytes = 2048;

 private:
  // Writes `blocks` blocks from `from` on as packs.
  using PackBlocks = void (*)(const std::byte* from, uint64_t blocks, float scale, std::byte* to);

  uint64_t row_bytes_;
  uint64_t file_bytes_;
  // Of a pack and of its blocks in the file; null, and single bytes, for plain types.
  PackBlocks pack_blocks_ = nullptr;
  uint64_t pack_bytes_ = 1;
  uint64_t pack_file_bytes_ = 1;
  uint64_t block_file_bytes_ = 1;
  bool has_scale_ = false;
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_PACK_ROWS_H_
