// HeadMatMul on tensor cores: many tokens, weights and inputs rounded to BF16.
// Floor: 2 * tokens * heads * row_count * col_count operations on tensor cores; reads the weights
// once per run of tokens.
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/matmul/head_matmul.h"
#include "kernels/cuda/matmul/round_rows.h"
#include "kernels/cuda/matmul/weight_tiles.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kWarps = 4;

struct HeadTileArgs {
  HeadMatMulParams p;
  ColumnWindow window;
  const uint16_t* x;  // (tokens, heads, padded), BF16
  uint32_t padded;
};

__device__ const std::byte* HeadRow(const HeadMatMulParams& p, uint32_t head, uint32_t row) {
  const size_t index =
      static_cast<size_t>(head) * p.rows_per_head + p.row_begin + min(row, p.row_count - 1);
  return static_cast<const std::byte*>(p.weight.data) + index * p.weight.row_stride_bytes;
}
__device__ const uint16_t* InputRow(const HeadTileArgs& a, uint32_t head, uint32_t token) {
  const size_t row = static_cast<size_t>(min(token, a.p.tokens - 1)) * a.p.heads + head;
  return a.x + row * a.padded;
}
__device__ float* OutputRow(const HeadMatMulParams& p, uint32_t head, uint32_t token) {
  return p.y + static_cast<size_t>(token) * p.y_token_stride +
         static_cast<size_t>(head) * p.y_head_stride;
}

// Plain. Grid: (runs of rows, heads, runs of tokens).
using RowsTile = ProductTile<2, 8>;

template <tensor::Type kType>
__global__ void __launch_bounds__(kWarps* kWarp) HeadTileKernel(const HeadTileArgs a) {
  const HeadMatMulParams& p = a.p;
  const uint32_t head = blockIdx.y, token = blockIdx.z * RowsTile::kInputs;
  const uint32_t first = (blockIdx.x * kWarps + threadIdx.x / kWarp) * RowsTile::kRows;
  if (first >= p.row_count) return;  // the whole warp; there are no barriers
  RowsTile tile;
  MultiplyTile<kType>([&](uint32_t row) { return HeadRow(p, head, first + row); },
                      [&](uint32_t input) { return InputRow(a, head, token + input); },
                      p.weight.cols, a.window, p.tokens - token, tile);
  tile.ForEach([&](uint32_t row, uint32_t input, float sum) {
    if (first + row >= p.row_count || token + input >= p.tokens) return;
    OutputRow(p, head, token + input)[first + row] = sum;
  });
}

// Transposed: tokens are the rows of the product and columns of the weight its columns. A lane
// dequantises 8 columns of 4 rows: B's fragments of 8 tiles, one per column of the run.
constexpr uint32_t kTokenTiles = 2;
constexpr uint32_t kTokens = 16 * kTokenTiles;
constexpr uint32_t kColumns = 64;  // of a warp

template <tensor::Type kType>
__global__ void __launch_bounds__(kWarps* kWarp) HeadTransposedTileKernel(const HeadTileArgs a) {
  const HeadMatMulParams& p = a.p;
  const uint32_t group = threadIdx.x % kWarp / 4, pair = threadIdx.x % 4;
  const uint32_t head = blockIdx.y, token = blockIdx.z * kTokens;
  const uint32_t first = a.window.first + (blockIdx.x * kWarps + threadIdx.x / kWarp) * kColumns;
  if (first >= a.window.end) return;  // the whole warp; there are no barriers
  const uint32_t col = first + 8 * group;
  const uint16_t* from[kTokenTiles][2];
#pragma unroll
  for (uint32_t t = 0; t < kTokenTiles; ++t) {
    from[t][0] = InputRow(a, head, token + 16 * t + group);
    from[t][1] = InputRow(a, head, token + 16 * t + group + 8);
  }

  float sums[kTokenTiles][8][4] = {};
  for (uint32_t j = 4 * pair; j < a.padded; j += 16) {
    uint32_t b[8][2];
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
      float w[2][8] = {};
      if (col < a.window.end) {
        LoadWeights<kType>(HeadRow(p, head, j + 2 * half), p.weight.cols, col, w[0]);
        LoadWeights<kType>(HeadRow(p, head, j + 2 * half + 1), p.weight.cols, col, w[1]);
      }
#pragma unroll
      for (uint32_t i = 0; i < 8; ++i) b[i][half] = FloatsToBf16(w[0][i], w[1][i]);
    }
#pragma unroll
    for (uint32_t t = 0; t < kTokenTiles; ++t) {
      const uint2 low = *reinterpret_cast<const uint2*>(from[t][0] + j);
      const uint2 high = *reinterpret_cast<const uint2*>(from[t][1] + j);
      const uint32_t x[4] = {low.x, high.x, low.y, high.y};
#pragma unroll
      for (uint32_t i = 0; i < 8; ++i) MmaBf16(sums[t][i], x, b[i]);
    }
  }

#pragma unroll
  for (uint32_t t = 0; t < kTokenTiles; ++t) {
#pragma unroll
    for (uint32_t c = 0; c < 4; ++c) {
      const uint32_t mine = token + 16 * t + group + c / 2 * 8;
      if (mine >= p.tokens) continue;
      float* const y = OutputRow(p, head, mine);
      const uint32_t run = first + 8 * (2 * pair + c % 2);
#pragma unroll
      for (uint32_t i = 0; i < 8; ++i) {
        if (run + i < a.window.begin || run + i >= a.window.end) continue;
        y[run + i - a.window.begin] = sums[t][i][c];
      }
    }
  }
}

}  // namespace

void EncodeHeadTiles(Stream& stream, const HeadMatMulParams& params) {
  const ColumnWindow window(params.weight);
  const uint32_t padded = params.transposed ? (params.row_count + 15) / 16 * 16 : window.padded;
  const size_t rows = static_cast<size_t>(params.tokens) * params.heads;
  auto* const x = reinterpret_cast<uint16_t*>(stream.Scratch(rows * padded * sizeof(uint16_t)));
  EncodeRoundRows(stream, {.x = params.x,
                           .rows = static_cast<uint32_t>(rows),
                           .inner_rows = params.heads,
                           .outer_stride = params.x_token_stride,
                           .inner_stride = params.x_head_stride,
                           .count = params.transposed ? params.row_count : params.weight.col_count,
                           .shift = params.transposed ? 0 : window.begin - window.first,
                           .padded = padded,
                           .out = x});
  const HeadTileArgs args = {params, window, x, padded};
  DispatchType(params.weight.type, [&](auto type) {
    if constexpr (type() != tensor::Type::kF32) {
      if (params.transposed) {
        stream.Launch("head_transposed_tiles", &HeadTransposedTileKernel<type()>,
                      dim3(Blocks(window.padded, kWarps * kColumns), params.heads,
                           Blocks(params.tokens, kTokens)),
                      kWarps * kWarp, 0, args);
      } else {
        stream.Launch("head_tiles", &HeadTileKernel<type()>,
                      dim3(Blocks(params.row_count, kWarps * RowsTile::kRows), params.heads,
                           Blocks(params.tokens, RowsTile::kInputs)),
                      kWarps * kWarp, 0, args);
      }
    }
  });
}

}  // namespace tandem::kernels::cuda
