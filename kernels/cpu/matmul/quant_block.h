// The activations that quantised weights are multiplied with: 32 values as signed bytes with one
// scale, and the sums that offsets and minimums of the weight formats need.
//
// value[i] ~ d * q[i]. Rounding is to nearest with d = max |value| / 127. The scale stays a float
// (a half, as Q8_0 stores it, would add its own error).
#ifndef TANDEM_KERNELS_CPU_MATMUL_QUANT_BLOCK_H_
#define TANDEM_KERNELS_CPU_MATMUL_QUANT_BLOCK_H_

#include <cstddef>
#include <cstdint>

namespace tandem::kernels::cpu {

// A cache line, so that no two threads write to one.
struct alignas(64) QuantBlock {
  static constexpr uint32_t kValues = 32;
  int8_t q[32];  // from -127 to 127
  float d;
  float d_sum;              // d * (q[0] + ... + q[31])
  int32_t neg_sum;          // -(q[0] + ... + q[31])
  int32_t neg_half_sum[2];  // the same of the first and the last 16
  // [half][i]: the same of bytes 4j + 2i and 4j + 2i + 1 for all j, which `vpmaddubsw` adds up in
  // one lane of 16 bits; then of both halves.
  int16_t neg_half_pair_sum[2][2];
  int16_t neg_pair_sum[2];
};
static_assert(sizeof(QuantBlock) == 64);

// From a row of `blocks` to the next, in blocks: an odd number, as rows a multiple of 4 KB apart
// would have all their blocks in the same few lines of the L1 cache.
inline constexpr size_t QuantRowStride(uint32_t blocks) { return blocks | 1; }
// Of so many rows; 0 blocks: there are none.
inline constexpr size_t QuantRowsBytes(size_t rows, uint32_t blocks) {
  return blocks == 0 ? 0 : rows * QuantRowStride(blocks) * sizeof(QuantBlock);
}

}  // namespace tandem::kernels::cpu

#endif  // TANDEM_KERNELS_CPU_MATMUL_QUANT_BLOCK_H_
