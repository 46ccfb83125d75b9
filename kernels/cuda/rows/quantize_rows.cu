// Floor: 4 bytes read per value, 1.5 written.
#include "kernels/cuda/rows/quantize_rows.h"

#include "kernels/cuda/rows/quantize_rows_kernel.h"

namespace tandem::kernels::cuda {
namespace {

struct RowsInMemory {
  const float* x;
  uint32_t stride;

  template <uint32_t kWidth>
  __device__ __forceinline__ Floats<kWidth> Run(uint32_t row, uint32_t i) const {
    return Load<kWidth>(x + static_cast<size_t>(row) * stride + i);
  }
};

}  // namespace

void EncodeQuantizeRows(Stream& stream, const RowsOfX& rows, Int8Group* out) {
  const ColumnRange& columns = rows.columns;
  const bool fours = InFours({rows.x_stride, columns.begin, columns.count}, {rows.x});
  LaunchQuantizeRows(stream, "quantize_rows", RowsInMemory{rows.x, rows.x_stride}, rows.rows,
                     columns, fours, out);
}

}  // namespace tandem::kernels::cuda
