// Floor: reads 4 bytes and writes 2 per value, the second read of a row from cache; then, of rows
// with an exponent alone, reads and writes 4 per value of the product.
#include "kernels/cuda/matmul/half_rows.h"

#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kScaleColumns = 4 * kThreads;
// A row with values of 2^15 and more is divided so that all are below.
constexpr int kLargestExponent = 15;

// The exponent e of finite values: |value| < 2^(e + 1).
__device__ int ExponentOf(float value) {
  const uint32_t biased = __float_as_uint(value) >> 23 & 0xff;
  return biased == 0xff ? -127 : static_cast<int>(biased) - 127;
}

// A block per row.
__global__ void __launch_bounds__(kThreads) HalfRowsKernel(const HalfRowsParams p) {
  SharedArena arena;
  const SharedArray<int> room = arena.Take<int>(kBlockReduceRoom);
  const float* const x = p.x + static_cast<size_t>(blockIdx.x) * p.x_stride;
  int largest = -127;
  for (uint32_t i = threadIdx.x; i < p.count; i += kThreads) {
    largest = max(largest, ExponentOf(x[i]));
  }
  largest = BlockMax(largest, room);
  const int exponent = largest < kLargestExponent ? 0 : largest - kLargestExponent + 1;
  if (threadIdx.x == 0) p.exponents[blockIdx.x] = exponent;
  const float factor = __uint_as_float(static_cast<uint32_t>(127 - exponent) << 23);
  for (uint32_t column = threadIdx.x * 8; column < p.padded; column += kThreads * 8) {
    uint16_t values[8];
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) {
      const uint32_t at = column + i - p.shift;  // wraps around before the row
      values[i] = FloatToHalf(at < p.count ? x[at] * factor : 0.0f);
    }
    *reinterpret_cast<uint4*>(p.out + static_cast<size_t>(blockIdx.x) * p.padded + column) =
        make_uint4(Pack(values[0], values[1]), Pack(values[2], values[3]),
                   Pack(values[4], values[5]), Pack(values[6], values[7]));
  }
}

struct ScaleTask {
  const int32_t* exponents;
  float* y;
  uint32_t cols;
  uint32_t y_stride;
};

// Grid: (rows, runs of kScaleColumns columns). Most blocks have nothing to do.
__global__ void __launch_bounds__(kThreads) ScaleRowsKernel(const ScaleTask task) {
  const int exponent = task.exponents[blockIdx.x];
  if (exponent == 0) return;
  const float factor = __uint_as_float(static_cast<uint32_t>(127 + exponent) << 23);
  float* const y = task.y + static_cast<size_t>(blockIdx.x) * task.y_stride;
  const uint32_t begin = blockIdx.y * kScaleColumns, end = min(begin + kScaleColumns, task.cols);
  for (uint32_t i = begin + threadIdx.x; i < end; i += kThreads) y[i] *= factor;
}

}  // namespace

void EncodeHalfRows(Stream& stream, const HalfRowsParams& params) {
  stream.Launch("half_rows", &HalfRowsKernel, params.rows, kThreads,
                SharedBytes<int>(kBlockReduceRoom), params);
}

void EncodeScaleRows(Stream& stream, const int32_t* exponents, float* y, uint32_t rows,
                     uint32_t cols, uint32_t y_stride) {
  stream.Launch("scale_rows", &ScaleRowsKernel, dim3(rows, Blocks(cols, kScaleColumns)), kThreads,
                0, {exponents, y, cols, y_stride});
}

}  // namespace tandem::kernels::cuda
