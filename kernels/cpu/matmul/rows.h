// The rows of a weight that are multiplied side by side, one per SIMD lane.
#ifndef TANDEM_KERNELS_CPU_MATMUL_ROWS_H_
#define TANDEM_KERNELS_CPU_MATMUL_ROWS_H_

#include <cstddef>
#include <cstdint>

namespace tandem::kernels::cpu {

// Where each lane's row begins. Lanes past the end of the weight repeat its last row.
template <int kLanes>
struct RowPointers {
  const std::byte* row[kLanes];
  alignas(64) int32_t offset[kLanes];  // of the same row from row[0]
};

// Rows [first, first + kLanes) of `rows` rows. REQUIRES: kLanes * stride < 2^31.
template <int kLanes>
[[gnu::always_inline]] inline void PointAtRows(const std::byte* data, uint64_t stride,
                                               uint32_t first, uint32_t rows,
                                               RowPointers<kLanes>* out) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint32_t last = rows - 1 - first;
    const uint32_t step = static_cast<uint32_t>(lane) < last ? static_cast<uint32_t>(lane) : last;
    out->offset[lane] = static_cast<int32_t>(step * stride);
    out->row[lane] = data + first * stride + step * stride;
  }
}

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_ROWS_H_
