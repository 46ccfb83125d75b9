// RowGrid: one thread per run of `width` values of a row, for ops with a single pass over rows.
// Short rows share a block, long ones take several.
#ifndef TANDEM_KERNELS_CUDA_ROWS_ROW_GRID_H_
#define TANDEM_KERNELS_CUDA_ROWS_ROW_GRID_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/stream.h"

namespace tandem::kernels::cuda {

class RowGrid {
 public:
  static constexpr uint32_t kThreads = 256;

  RowGrid(uint32_t rows, uint32_t dim, uint32_t width) : rows_(rows), dim_(dim) {
    while (log_threads_ < 8 && (width << log_threads_) < dim) ++log_threads_;
    chunks_ = Blocks(dim, width << log_threads_);
  }

  dim3 grid() const { return dim3(Blocks(rows_, kThreads >> log_threads_), chunks_); }

  // Calls f(row, column of the first value) where the thread has a run.
  template <uint32_t kWidth, typename F>
  __device__ void Do(F f) const {
    const uint32_t row = (blockIdx.x * kThreads + threadIdx.x) >> log_threads_;
    const uint32_t thread = threadIdx.x & ((1u << log_threads_) - 1);
    const uint32_t column = ((blockIdx.y << log_threads_) + thread) * kWidth;
    if (row < rows_ && column < dim_) f(row, column);
  }

 private:
  uint32_t rows_;
  uint32_t dim_;
  uint32_t log_threads_ = 0;  // of one row in one block
  uint32_t chunks_;           // blocks along a row
};

}  // namespace tandem::kernels::cuda

#endif  // TANDEM_KERNELS_CUDA_ROWS_ROW_GRID_H_
