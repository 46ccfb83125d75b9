// Floor: every value of y is read and written once, 8 bytes.
#include "kernels/cuda/matmul/add_bias.h"

#include "kernels/cuda/device/floats.h"
#include "kernels/cuda/rows/row_grid.h"

namespace tandem::kernels::cuda {
namespace {

struct AddBiasTask {
  const float* bias;
  float* y;
  uint32_t y_stride;
  RowGrid grid;
};

template <uint32_t kWidth>
__global__ void __launch_bounds__(RowGrid::kThreads) AddBiasKernel(const AddBiasTask task) {
  task.grid.Do<kWidth>([&](uint32_t row, uint32_t column) {
    float* const y = task.y + static_cast<size_t>(row) * task.y_stride + column;
    Floats<kWidth> values = Load<kWidth>(y);
    const Floats<kWidth> bias = Load<kWidth>(task.bias + column);
#pragma unroll
    for (uint32_t i = 0; i < kWidth; ++i) values.at[i] += bias.at[i];
    Store(y, values);
  });
}

}  // namespace

void EncodeAddBias(Stream& stream, const float* bias, float* y, uint32_t rows, uint32_t cols,
                   uint32_t y_stride) {
  const bool fours = InFours({cols, y_stride}, {bias, y});
  const RowGrid grid(rows, cols, fours ? 4 : 1);
  stream.Launch("add_bias", fours ? &AddBiasKernel<4> : &AddBiasKernel<1>, grid.grid(),
                RowGrid::kThreads, 0, {bias, y, y_stride, grid});
}

}  // namespace tandem::kernels::cuda
