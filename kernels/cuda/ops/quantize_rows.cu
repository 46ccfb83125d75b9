// Floor: 4 bytes read per value, 1.5 (int8) or 2 (BF16) written.
#include "kernels/cuda/device/numbers.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/ops/quantize_rows.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kThreads = 128;
constexpr uint32_t kLanesPerGroup = 8;  // each has 4 values
constexpr uint32_t kNotFinite = 0x7f800000u;

struct Int8Task {
  RowsOfX rows;
  uint32_t units;
  Int8Group* out;
};
struct Bf16Task {
  RowsOfX rows;
  uint32_t units;
  uint16_t* out;
};

// The value in the weight's column `col`.
__device__ __forceinline__ float ValueIn(const RowsOfX& rows, uint32_t row, uint32_t col) {
  const uint32_t at = col - rows.columns.begin;  // wraps around before the first column
  return at < rows.columns.count ? rows.x[static_cast<size_t>(row) * rows.x_stride + at] : 0.0f;
}

// The largest, and the sum, over 8 lanes or 4.
template <int kLanes, typename T, typename Op>
__device__ __forceinline__ T ReduceOver(T value, Op op) {
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask /= 2) {
    value = op(value, __shfl_xor_sync(kAllLanes, value, mask));
  }
  return value;
}

// Block (x, y): groups from 16 y of row x.
__global__ void __launch_bounds__(kThreads) QuantizeRowsKernel(const Int8Task task) {
  const uint32_t unit = (blockIdx.y * kThreads + threadIdx.x) / kLanesPerGroup;
  const uint32_t lane = threadIdx.x % kLanesPerGroup;
  const uint32_t col = (task.rows.columns.begin / 32 + unit) * 32 + 4 * lane;
  float values[4];
  uint32_t largest = 0;  // bits of a magnitude: in order, NaNs and infinities last
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[i] = unit < task.units ? ValueIn(task.rows, blockIdx.x, col + i) : 0.0f;
    largest = max(largest, __float_as_uint(values[i]) & 0x7fffffffu);
  }
  largest = ReduceOver<kLanesPerGroup>(largest, MaxOp());
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
  sum = ReduceOver<kLanesPerGroup / 2>(sum, AddOp());  // of 16 values
  const int high = __shfl_xor_sync(kAllLanes, sum, kLanesPerGroup / 2);
  if (unit >= task.units) return;
  Int8Group* const out = task.out + static_cast<size_t>(blockIdx.x) * task.units + unit;
  out->q[lane] = static_cast<int>(packed);
  if (lane != 0) return;
  out->scale = largest >= kNotFinite ? __uint_as_float(0x7fc00000u)
               : usable              ? magnitude / 127.0f
                                     : 0.0f;
  out->sum_low = sum;
  out->sum_high = high;
}

// A thread of block (x, y) has 8 columns of row x.
__global__ void __launch_bounds__(kThreads) RowsToBf16Kernel(const Bf16Task task) {
  const uint32_t unit = blockIdx.y * kThreads + threadIdx.x;
  if (unit >= task.units) return;
  const uint32_t col = (task.rows.columns.begin / 8 + unit) * 8;
  uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    words[i] = Pack(FloatToBf16(ValueIn(task.rows, blockIdx.x, col + 2 * i)),
                    FloatToBf16(ValueIn(task.rows, blockIdx.x, col + 2 * i + 1)));
  }
  reinterpret_cast<uint4*>(task.out)[static_cast<size_t>(blockIdx.x) * task.units + unit] =
      make_uint4(words[0], words[1], words[2], words[3]);
}

}  // namespace

void EncodeQuantizeRows(Stream& stream, const RowsOfX& rows, Int8Group* out) {
  const uint32_t units = rows.columns.Units(32);
  const dim3 grid(rows.rows, Blocks(uint64_t{units} * kLanesPerGroup, kThreads));
  stream.Launch("quantize_rows", &QuantizeRowsKernel, grid, kThreads, 0, {rows, units, out});
}

void EncodeRowsToBf16(Stream& stream, const RowsOfX& rows, uint16_t* out) {
  const uint32_t units = rows.columns.Units(8);
  const dim3 grid(rows.rows, Blocks(units, kThreads));
  stream.Launch("rows_to_bf16", &RowsToBf16Kernel, grid, kThreads, 0, {rows, units, out});
}

}  // namespace tandem::kernels::cuda
