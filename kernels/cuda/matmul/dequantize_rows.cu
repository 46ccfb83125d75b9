// Floor: the bytes of the rows are read once, 2 bytes per value written.
#include "kernels/cuda/matmul/dequantize_rows.h"

#include "kernels/cuda/device/blocks.h"
#include "kernels/cuda/device/blocks_dispatch.h"
#include "kernels/cuda/device/numbers.h"

namespace tandem::kernels::cuda {
namespace {

constexpr uint32_t kThreads = 128;

struct DequantizeTask {
  const std::byte* first_row;
  uint64_t row_stride_bytes;
  uint32_t first_unit;
  uint32_t units;
  uint16_t* out;
};

// A thread of block (x, y) has 8 columns of row x.
template <tensor::Type kType>
__global__ void __launch_bounds__(kThreads) DequantizeRowsKernel(const DequantizeTask task) {
  const uint32_t unit = blockIdx.y * kThreads + threadIdx.x;
  if (unit >= task.units) return;
  float values[8];
  Dequantize8<kType>(task.first_row + blockIdx.x * task.row_stride_bytes,
                     8 * (task.first_unit + unit), values);
  uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    words[i] = Pack(FloatToBf16(values[2 * i]), FloatToBf16(values[2 * i + 1]));
  }
  reinterpret_cast<uint4*>(task.out)[static_cast<size_t>(blockIdx.x) * task.units + unit] =
      make_uint4(words[0], words[1], words[2], words[3]);
}

}  // namespace

void EncodeDequantizeRows(Stream& stream, const Weight& weight, uint32_t row_begin,
                          uint32_t row_count, ColumnRange columns, uint16_t* out) {
  const uint32_t units = columns.Units(8);
  const DequantizeTask task = {
      static_cast<const std::byte*>(weight.data) + row_begin * weight.row_stride_bytes,
      weight.row_stride_bytes, columns.First(8), units, out};
  DispatchType(weight.type, [&](auto type) {
    stream.Launch("dequantize_rows", &DequantizeRowsKernel<decltype(type)::value>,
                  dim3(row_count, Blocks(units, kThreads)), kThreads, 0, task);
  });
}

}  // namespace tandem::kernels::cuda
