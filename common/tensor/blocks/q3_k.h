// Q3_K: 256 values of 3 bits in 16 groups of 16, each with a signed 6-bit scale.
//
// value = (d * scale[g]) * (q - 4), for value i of group g = i / 16.
// The block is two halves of 128 values. Value 32 k + l of half h (k in 0..3, l in 0..31) has
//   its low 2 bits in qs[32 h + l], bits 2 k and 2 k + 1
//   its third bit in  hmask[l], bit 4 h + k
// The 12 bytes of `scales` pack sixteen numbers of six bits, each 32 more than the scale:
//   bytes 0-7:  low 4 bits of 0..7 in the low halves, of 8..15 in the high halves
//   bytes 8-11: byte 8 + j has the upper 2 bits of j, j + 4, j + 8, j + 12, lowest first
// Layout: https://github.com/ggml-org/ggml (block_q3_K).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_Q3_K_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_Q3_K_H_

#include <cstdint>

namespace tandem::tensor {

struct BlockQ3_K {
  static constexpr int kValues = 256;
  static constexpr int kGroupValues = 16;
  static constexpr int kGroups = 16;
  uint8_t hmask[32];   // third bits
  uint8_t qs[64];      // low two bits, four values per byte
  uint8_t scales[12];  // packed 6-bit scales
  uint16_t d;          // half: scale of the scales

  // In [-32, 32).
  int Scale(int g) const {
    const int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
    const int high = (scales[8 + g % 4] >> (g / 4 * 2)) & 3;
    return (low | (high << 4)) - 32;
  }
  // In [0, 8).
  int Value(int i) const {
    const int low = (qs[32 * (i / 128) + i % 32] >> (i % 128 / 32 * 2)) & 3;
    return low | (((hmask[i % 32] >> (i / 32)) & 1) << 2);
  }
};
static_assert(sizeof(BlockQ3_K) == 110 && alignof(BlockQ3_K) == 2);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_Q3_K_H_
