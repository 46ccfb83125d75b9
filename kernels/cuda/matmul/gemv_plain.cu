// Matrix-vector products with F32, F16 and BF16 weights, in float.
// Floor: the bytes of the weight are read once.
#include "kernels/cuda/device/blocks.h"
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/device/floats.h"
#include "kernels/cuda/matmul/gemv_rows.h"

namespace tandem::kernels::cuda {
namespace {

struct PlainMatVecTask {
  MatVecParts parts;
  RowsOfX x;
  bool x_in_fours;  // x is aligned to 16 bytes where a thread's columns begin
};

// Columns that a thread reads at a time: 16 bytes of a row, to which rows are padded.
template <tensor::Type kType>
constexpr uint32_t kPlainUnit = kType == tensor::Type::kF32 ? 4 : 8;

template <tensor::Type kType>
__device__ __forceinline__ void LoadWeights(const std::byte* row, uint32_t col,
                                            float (&out)[kPlainUnit<kType>]) {
  if constexpr (kType == tensor::Type::kF32) {
    uint32_t words[4];
    LoadWords(row + size_t{4} * col, words);
#pragma unroll
    for (int i = 0; i < 4; ++i) out[i] = __uint_as_float(words[i]);
  } else {
    Dequantize8<kType>(row, col, out);
  }
}

// x in the weight's columns from `col`, zeros outside the window.
template <uint32_t kCount>
__device__ __forceinline__ void LoadX(const PlainMatVecTask& task, uint32_t token, uint32_t col,
                                      float (&out)[kCount]) {
  const ColumnRange& columns = task.x.columns;
  const float* const row = task.x.x + static_cast<size_t>(token) * task.x.x_stride;
  const uint32_t at = col - columns.begin;  // wraps around before the first column
  if (task.x_in_fours && at < columns.count && columns.count - at >= kCount) {
#pragma unroll
    for (uint32_t i = 0; i < kCount; i += 4) {
      const Floats<4> four = Load<4>(row + at + i);
#pragma unroll
      for (uint32_t j = 0; j < 4; ++j) out[i + j] = four.at[j];
    }
  } else {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) out[i] = at + i < columns.count ? row[at + i] : 0.0f;
  }
}

template <tensor::Type kType, int kTokens, int kRows>
__global__ void __launch_bounds__(kMaxMatVecThreads, kMatVecBlocksPerSm)
    PlainMatVecKernel(const __grid_constant__ PlainMatVecTask task) {
  SharedArena arena;
  const SharedArray<float> room = arena.Take<float>(kRows * kTokens * kMaxMatVecThreads / kWarp);
  const BlockOfRows<kRows> block(task.parts.part[blockIdx.y]);
  if (block.empty()) return;  // the whole block
  constexpr uint32_t kUnit = kPlainUnit<kType>;
  const uint32_t units = task.x.columns.Units(kUnit);
  float sums[kRows * kTokens] = {};
  for (uint32_t u = threadIdx.x; u < units; u += blockDim.x) {
    const uint32_t col = (task.x.columns.First(kUnit) + u) * kUnit;
    float weights[kRows][kUnit];
#pragma unroll
    for (int r = 0; r < kRows; ++r) LoadWeights<kType>(block.Row(r), col, weights[r]);
#pragma unroll
    for (int t = 0; t < kTokens; ++t) {
      float x[kUnit];
      LoadX(task, min(static_cast<uint32_t>(t), task.x.rows - 1), col, x);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (uint32_t i = 0; i < kUnit; ++i) {
          sums[r * kTokens + t] = fmaf(weights[r][i], x[i], sums[r * kTokens + t]);
        }
      }
    }
  }
  block.template Finish<kTokens>(sums, task.x.rows, room);
}

}  // namespace

void EncodePlainMatVec(Stream& stream, tensor::Type type, const MatVecParts& parts,
                       const RowsOfX& x) {
  PlainTypes::Dispatch(type, [&](auto t) {
    constexpr tensor::Type kType = decltype(t)::value;
    const uint32_t begin = x.columns.begin % kPlainUnit<kType>;
    const bool x_in_fours = InFours({x.x_stride, begin}, {x.x});
    DispatchTokens<MaxPlainMatVecTokens(kType)>(x.rows, [&](auto tokens) {
      constexpr int kTokens = decltype(tokens)::value;
      constexpr int kRows = MatVecRows(kTokens);
      stream.Launch("matvec_plain", &PlainMatVecKernel<kType, kTokens, kRows>,
                    MatVecGrid<kRows>(parts), MatVecThreads(x.columns.Units(kPlainUnit<kType>)),
                    SharedBytes<float>(kRows * kTokens * kMaxMatVecThreads / kWarp),
                    {parts, x, x_in_fours});
    });
  });
}

}  // namespace tandem::kernels::cuda
