// Embed: rows of a table of any type, by token.
// Floor: the bytes of the tokens' rows are read once, 4 bytes per value are written.
#include "kernels/cuda/device/blocks.h"
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/device/floats.h"
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/rows/row_grid.h"

namespace tandem::kernels::cuda {
namespace {

struct EmbedTask {
  EmbedParams params;
  RowGrid grid;
};

// The token's row of the table; null if another rank has it.
__device__ const std::byte* RowOf(const EmbedParams& p, uint32_t token) {
  const int64_t row = int64_t{p.ids[token]} - p.vocab_begin;
  if (row < 0 || row >= p.table.rows) return nullptr;
  return static_cast<const std::byte*>(p.table.data) +
         static_cast<uint64_t>(row) * p.table.row_stride_bytes;
}

template <tensor::Type kType>
__global__ void __launch_bounds__(RowGrid::kThreads) EmbedKernel(const EmbedTask task) {
  FollowEarlierLaunches();
  const EmbedParams& p = task.params;
  task.grid.Do<8>([&](uint32_t token, uint32_t col) {
    float values[8] = {};
    const std::byte* const row = RowOf(p, token);
    if (row != nullptr) Dequantize8<kType>(row, col, values);
    float* const out = p.out + static_cast<size_t>(token) * p.table.cols + col;
    const float s = p.scale;
    Store<4>(out, {{s * values[0], s * values[1], s * values[2], s * values[3]}});
    Store<4>(out + 4, {{s * values[4], s * values[5], s * values[6], s * values[7]}});
  });
}

// For shapes and addresses that do not allow vectors of 8.
template <tensor::Type kType>
__global__ void __launch_bounds__(RowGrid::kThreads) EmbedSinglyKernel(const EmbedTask task) {
  FollowEarlierLaunches();
  const EmbedParams& p = task.params;
  task.grid.Do<1>([&](uint32_t token, uint32_t col) {
    const std::byte* const row = RowOf(p, token);
    p.out[static_cast<size_t>(token) * p.table.cols + col] =
        row != nullptr ? p.scale * ValueAt<kType>(row, col) : 0.0f;
  });
}

}  // namespace

void EncodeOp(Stream& stream, const EmbedParams& params) {
  const bool eights = params.table.cols % 8 == 0 && InFours({params.table.cols}, {params.out});
  const RowGrid grid(params.tokens, params.table.cols, eights ? 8 : 1);
  DispatchType(params.table.type, [&](auto type) {
    constexpr tensor::Type kType = decltype(type)::value;
    stream.LaunchEarly("embed", eights ? &EmbedKernel<kType> : &EmbedSinglyKernel<kType>,
                       grid.grid(), RowGrid::kThreads, 0, {params, grid});
  });
}

}  // namespace tandem::kernels::cuda
