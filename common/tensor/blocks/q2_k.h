// Q2_K: 256 values of 2 bits in 16 groups of 16; each group has a 4-bit scale and a 4-bit minimum.
//
// value = (d * scale[g]) * q - (dmin * min[g]), for value i of group g = i / 16.
// The block is two halves of 128 values; half h uses qs[32 h ..]. Within a half, value 32 k + l (k
// in 0..3, l in 0..31) lies in bits 2 k and 2 k + 1 of qs[l].
// Layout: https://github.com/ggml-org/ggml (block_q2_K).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_Q2_K_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_Q2_K_H_

#include <cstdint>

namespace tandem::tensor {

struct BlockQ2_K {
  static constexpr int kValues = 256;
  static constexpr int kGroupValues = 16;
  static constexpr int kGroups = 16;
  uint8_t scales[16];  // per group: scale in the low half, minimum in the high half
  uint8_t qs[64];      // four values per byte
  uint16_t d;          // half: scale of the scales
  uint16_t dmin;       // half: scale of the minimums

  uint8_t Scale(int g) const { return scales[g] & 15; }
  uint8_t Min(int g) const { return scales[g] >> 4; }
  // In [0, 4).
  uint8_t Value(int i) const { return (qs[32 * (i / 128) + i % 32] >> (i % 128 / 32 * 2)) & 3; }
};
static_assert(sizeof(BlockQ2_K) == 84 && alignof(BlockQ2_K) == 2);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_Q2_K_H_
