// Floor: 4 bytes read per value, 1.5 written.
#include "kernels/cuda/matmul/quantize_rows.h"

#include "kernels/cuda/device/warp.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kThreads = 128;
constexpr uint32_t kLanesPerGroup = 8;  // each has 4 values
constexpr uint32_t kNotFinite = 0x7f800000u;

struct Int8Task {
  RowsOfX rows;
  uint32_t units;
  GroupStrides strides;
  Int8Group* out;
};

// The value in the weight's column `col`.
__device__ __forceinline__ float ValueIn(const RowsOfX& rows, uint32_t row, uint32_t col) {
  const uint32_t at = col - rows.columns.begin;  // wraps around before the first column
  return at < rows.columns.count ? rows.x[static_cast<size_t>(row) * rows.x_stride + at] : 0.0f;
}

// Block (x, y): groups from 16 y of row x.
__global__ void __launch_bounds__(kThreads) QuantizeRowsKernel(const Int8Task task) {
  const uint32_t unit = (blockIdx.y * kThreads + threadIdx.x) / kLanesPerGroup;
  const uint32_t lane = threadIdx.x % kLanesPerGroup;
  const uint32_t col = (task.rows.columns.begin / 32 + unit) * 32 + 4 * lane;
  float values[4];
  uint32_t largest = 0;  // bits of a magnitude, which order like it; infinities and NaNs last
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[i] = unit < task.units ? ValueIn(task.rows, blockIdx.x, col + i) : 0.0f;
    largest = max(largest, __float_as_uint(values[i]) & 0x7fffffffu);
  }
  largest = LanesReduce<kLanesPerGroup>(largest, MaxOp());
  const float magnitude = __uint_as_float(largest);
  const bool usable = largest < kNotFinite && magnitude >= 0x1p-100f;
  const float inverse = usable ? 127.0f / magnitude : 0.0f;
  uint32_t packed = 0;
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int q = usable ? __float2int_rn(values[i] * inverse) : 0;
    packed |= (static_cast<uint32_t>(q) & 0xff) << (8 * i);
    sum += q;
  }
  sum = LanesReduce<kLanesPerGroup / 2>(sum, AddOp());  // of 16 values
  const int high = __shfl_xor_sync(kAllLanes, sum, kLanesPerGroup / 2);
  if (unit >= task.units) return;
  Int8Group* const out = task.out + static_cast<size_t>(blockIdx.x) * task.strides.of_row +
                         static_cast<size_t>(unit) * task.strides.of_group;
  out->q[lane] = static_cast<int>(packed);
  if (lane != 0) return;
  out->scale = largest >= kNotFinite ? __uint_as_float(0x7fc00000u)
               : usable              ? magnitude / 127.0f
                                     : 0.0f;
  out->sum_low = sum;
  out->sum_high = high;
}

}  // namespace

void EncodeQuantizeRows(Stream& stream, const RowsOfX& rows, GroupStrides strides, Int8Group* out) {
  const uint32_t units = rows.columns.Units(32);
  const dim3 grid(rows.rows, Blocks(uint64_t{units} * kLanesPerGroup, kThreads));
  stream.Launch("quantize_rows", &QuantizeRowsKernel, grid, kThreads, 0,
                {rows, units, strides, out});
}

}  // namespace tandem::kernels::cuda
