// CopyRows, GatherRows and UnshardLogits.
// Floor: every value is read and written once, 8 bytes.
#include <algorithm>

#include "kernels/cuda/device/floats.h"
#include "kernels/cuda/device/launch_order.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/rows/row_grid.h"

namespace tandem::kernels::cuda {
namespace {

struct CopyTask {
  CopyRowsParams params;
  const int32_t* from;  // row r comes from row from[r] of x; null: from row r
  RowGrid grid;
};

template <uint32_t kWidth>
__global__ void __launch_bounds__(RowGrid::kThreads) CopyRowsKernel(const CopyTask task) {
  FollowEarlierLaunches();
  const CopyRowsParams& p = task.params;
  task.grid.Do<kWidth>([&](uint32_t row, uint32_t column) {
    const size_t from = task.from != nullptr ? static_cast<size_t>(task.from[row]) : row;
    Store(p.y + static_cast<size_t>(row) * p.y_stride + column,
          Load<kWidth>(p.x + from * p.x_stride + column));
  });
}

void Copy(Stream& stream, const char* name, const CopyRowsParams& params, const int32_t* from) {
  const bool fours = InFours({params.dim, params.x_stride, params.y_stride}, {params.x, params.y});
  const RowGrid grid(params.rows, params.dim, fours ? 4 : 1);
  stream.LaunchEarly(name, fours ? &CopyRowsKernel<4> : &CopyRowsKernel<1>, grid.grid(),
                     RowGrid::kThreads, 0, {params, from, grid});
}

// `starts` is host memory that may change after the call: it is passed by value in the parameters.
constexpr uint32_t kMaxRanks = 64;

struct UnshardTask {
  const float* gathered;
  float* out;
  uint32_t rows;
  uint32_t slice_max;
  uint32_t vocab;
  uint32_t starts[kMaxRanks + 1];
};

// Block (x, y, z): row x, chunk y of the slice of rank z.
template <uint32_t kWidth>
__global__ void __launch_bounds__(RowGrid::kThreads) UnshardKernel(const UnshardTask task) {
  const uint32_t rank = blockIdx.z;
  const uint32_t column = (blockIdx.y * RowGrid::kThreads + threadIdx.x) * kWidth;
  const uint32_t start = task.starts[rank];
  if (column >= task.starts[rank + 1] - start) return;
  const size_t row = static_cast<size_t>(rank) * task.rows + blockIdx.x;
  Store(task.out + static_cast<size_t>(blockIdx.x) * task.vocab + start + column,
        Load<kWidth>(task.gathered + row * task.slice_max + column));
}

}  // namespace

void EncodeOp(Stream& stream, const CopyRowsParams& params) {
  Copy(stream, "copy_rows", params, nullptr);
}

void EncodeOp(Stream& stream, const GatherRowsParams& params) {
  const CopyRowsParams copy = {params.src, params.dim, params.count,
                               params.dim, params.out, params.dim};
  Copy(stream, "gather_rows", copy, params.rows);
}

void EncodeOp(Stream& stream, const UnshardLogitsParams& params) {
  if (params.ranks > kMaxRanks) {
    stream.NoteError("logits of more than 64 ranks");
    return;
  }
  UnshardTask task = {.gathered = params.gathered,
                      .out = params.out,
                      .rows = params.rows,
                      .slice_max = params.slice_max,
                      .vocab = params.starts[params.ranks],
                      .starts = {}};
  std::copy_n(params.starts, params.ranks + 1, task.starts);
  bool fours = InFours({params.slice_max}, {params.gathered, params.out});
  for (uint32_t rank = 0; rank <= params.ranks; ++rank) fours &= task.starts[rank] % 4 == 0;
  const uint32_t width = fours ? 4 : 1;
  const dim3 grid(params.rows, Blocks(params.slice_max, RowGrid::kThreads * width), params.ranks);
  stream.Launch("unshard_logits", fours ? &UnshardKernel<4> : &UnshardKernel<1>, grid,
                RowGrid::kThreads, 0, task);
}

}  // namespace tandem::kernels::cuda
