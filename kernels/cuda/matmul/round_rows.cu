// Floor: reads 4 bytes and writes 2 per value.
#include "kernels/cuda/matmul/round_rows.h"

#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/rows/row_grid.h"

namespace tandem::kernels::cuda {
namespace {

struct RoundArgs {
  RoundRowsParams p;
  RowGrid grid;
};

__global__ void __launch_bounds__(RowGrid::kThreads) RoundRowsKernel(const RoundArgs a) {
  FollowEarlierLaunches();
  const RoundRowsParams& p = a.p;
  a.grid.Do<8>([&](uint32_t row, uint32_t column) {
    const float* const x = p.x + static_cast<size_t>(row / p.inner_rows) * p.outer_stride +
                           static_cast<size_t>(row % p.inner_rows) * p.inner_stride;
    uint16_t values[8];
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) {
      const uint32_t at = column + i - p.shift;  // wraps around before the row
      values[i] = FloatToBf16(at < p.count ? x[at] : 0.0f);
    }
    *reinterpret_cast<uint4*>(p.out + static_cast<size_t>(row) * p.padded + column) =
        make_uint4(Pack(values[0], values[1]), Pack(values[2], values[3]),
                   Pack(values[4], values[5]), Pack(values[6], values[7]));
  });
}

}  // namespace

void EncodeRoundRows(Stream& stream, const RoundRowsParams& params) {
  const RowGrid grid(params.rows, params.padded, 8);
  stream.LaunchEarly("round_rows", &RoundRowsKernel, grid.grid(), RowGrid::kThreads, 0,
                     {params, grid});
}

}  // namespace tandem::kernels::cuda
