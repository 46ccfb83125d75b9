// HeadMatMul in float: few tokens, or F32 weights.
// Floor: reads each weight once for kHeadTokens tokens: tokens / 8 (rounded up) times the bytes of
// the rows used; inputs and outputs are small in comparison.
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/head_matmul.h"
#include "kernels/cuda/matmul/weight_rows.h"

namespace tandem::kernels::cuda {
namespace {

struct HeadArgs {
  HeadMatMulParams p;
  ColumnWindow window;
  bool fours;
};

__device__ const std::byte* HeadRow(const HeadMatMulParams& p, uint32_t head, uint32_t row) {
  const size_t index = static_cast<size_t>(head) * p.rows_per_head + p.row_begin + row;
  return static_cast<const std::byte*>(p.weight.data) + index * p.weight.row_stride_bytes;
}

// Grid: (runs of rows, heads, runs of kTokens tokens).
constexpr uint32_t kRowWarps = 4;

template <tensor::Type kType, uint32_t kTokens>
__global__ void __launch_bounds__(kRowWarps* kWarp) HeadRowsKernel(const HeadArgs a) {
  const HeadMatMulParams& p = a.p;
  const uint32_t head = blockIdx.y, token = blockIdx.z * kTokens;
  const uint32_t row = blockIdx.x * kRowWarps * kWarpRows + threadIdx.x / kRowLanes;
  const float* const x = p.x + static_cast<size_t>(token) * p.x_token_stride +
                         static_cast<size_t>(head) * p.x_head_stride;
  const uint32_t tokens = min(p.tokens - token, kTokens);
  float sums[kTokens] = {};
  // Rows beyond the last repeat it: warp functions need every lane.
  MultiplyFloats<kType>(
      HeadRow(p, head, min(row, p.row_count - 1)), p.weight.cols, a.window, a.fours,
      [&](uint32_t t) {
        return t < tokens ? x + static_cast<size_t>(t) * p.x_token_stride : nullptr;
      },
      sums);
  float* const y = p.y + static_cast<size_t>(token) * p.y_token_stride +
                   static_cast<size_t>(head) * p.y_head_stride;
#pragma unroll
  for (uint32_t t = 0; t < kTokens; ++t) {
    const float sum = SumOfRow(sums[t]);
    if (threadIdx.x % kRowLanes == 0 && t < tokens && row < p.row_count) {
      y[static_cast<size_t>(t) * p.y_token_stride + row] = sum;
    }
  }
}

// Transposed. A lane has 8 columns; the block's warps divide the rows. Grid: (runs of columns,
// heads, runs of kTokens tokens).
constexpr uint32_t kColumnWarps = 8;
constexpr uint32_t kColumns = kWarp * 8;

template <tensor::Type kType, uint32_t kTokens>
__global__ void __launch_bounds__(kColumnWarps* kWarp) HeadColumnsKernel(const HeadArgs a) {
  const HeadMatMulParams& p = a.p;
  SharedArena arena;
  const SharedArray<float> parts = arena.Take<float>(kColumnWarps * kColumns);
  const uint32_t head = blockIdx.y, token = blockIdx.z * kTokens;
  const uint32_t tokens = min(p.tokens - token, kTokens);
  const uint32_t warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const uint32_t begin = a.window.first + blockIdx.x * kColumns;
  const uint32_t col = begin + lane * 8;
  const float* const x = p.x + static_cast<size_t>(token) * p.x_token_stride +
                         static_cast<size_t>(head) * p.x_head_stride;

  float sums[kTokens][8] = {};
  for (uint32_t j = warp; j < p.row_count && col < a.window.end; j += kColumnWarps) {
    float w[8];
    LoadWeights<kType>(HeadRow(p, head, j), p.weight.cols, col, w);
#pragma unroll
    for (uint32_t t = 0; t < kTokens; ++t) {
      if (t >= tokens) break;
      const float value = x[static_cast<size_t>(t) * p.x_token_stride + j];
#pragma unroll
      for (uint32_t i = 0; i < 8; ++i) sums[t][i] += w[i] * value;
    }
  }

  float* const y = p.y + static_cast<size_t>(token) * p.y_token_stride +
                   static_cast<size_t>(head) * p.y_head_stride;
  const uint32_t mine = begin + threadIdx.x;  // the column that this thread sums
#pragma unroll
  for (uint32_t t = 0; t < kTokens; ++t) {
    if (t >= tokens) break;
    if (t > 0) __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) parts[warp * kColumns + i * kWarp + lane] = sums[t][i];
    __syncthreads();
    float sum = 0;
    const uint32_t at = threadIdx.x % 8 * kWarp + threadIdx.x / 8;
    for (uint32_t w = 0; w < kColumnWarps; ++w) sum += parts[w * kColumns + at];
    if (mine >= a.window.begin && mine < a.window.end) {
      y[static_cast<size_t>(t) * p.y_token_stride + (mine - a.window.begin)] = sum;
    }
  }
}
static_assert(kColumns == kColumnWarps * kWarp, "a thread joins one column");

HeadArgs ArgsOf(const HeadMatMulParams& params) {
  const ColumnWindow window(params.weight);
  return {params, window,
          InputsInFours(window, params.x, {params.x_token_stride, params.x_head_stride})};
}

}  // namespace

void EncodeHeadRows(Stream& stream, const HeadMatMulParams& params) {
  const uint32_t blocks = Blocks(params.row_count, kRowWarps * kWarpRows);
  DispatchType(params.weight.type, [&](auto type) {
    if (params.tokens == 1) {
      stream.Launch("head_rows", &HeadRowsKernel<type(), 1>, dim3(blocks, params.heads, 1),
                    kRowWarps * kWarp, 0, ArgsOf(params));
    } else {
      stream.Launch("head_rows", &HeadRowsKernel<type(), kHeadTokens>,
                    dim3(blocks, params.heads, Blocks(params.tokens, kHeadTokens)),
                    kRowWarps * kWarp, 0, ArgsOf(params));
    }
  });
}

void EncodeHeadColumns(Stream& stream, const HeadMatMulParams& params) {
  const HeadArgs args = ArgsOf(params);
  const uint32_t blocks = Blocks(args.window.padded, kColumns);
  const size_t shared = SharedBytes<float>(kColumnWarps * kColumns);
  DispatchType(params.weight.type, [&](auto type) {
    if (params.tokens == 1) {
      stream.Launch("head_columns", &HeadColumnsKernel<type(), 1>, dim3(blocks, params.heads, 1),
                    kColumnWarps * kWarp, shared, args);
    } else {
      stream.Launch("head_columns", &HeadColumnsKernel<type(), kHeadTokens>,
                    dim3(blocks, params.heads, Blocks(params.tokens, kHeadTokens)),
                    kColumnWarps * kWarp, shared, args);
    }
  });
}

}  // namespace tandem::kernels::cuda
