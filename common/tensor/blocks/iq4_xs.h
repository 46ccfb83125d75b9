// IQ4_XS: 256 values of 4 bits in 8 groups of 32, each with a signed 6-bit scale.
//
// value = (d * scale[g]) * codebook[q], kIq4Codebook, for value i of group g = i / 32.
// Bytes qs[16 g .. 16 g + 15] are group g: byte j holds its value j in the low half and its value
// j + 16 in the high half. Each scale is stored 32 too large: its low 4 bits in scales_l[g / 2]
// (low half of the byte for even g), its upper 2 bits in bits 2 g, 2 g + 1 of scales_h. Layout:
// https://github.com/ggml-org/ggml (block_iq4_xs).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_IQ4_XS_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_IQ4_XS_H_

#include <cstdint>

#include "common/tensor/blocks/codebook.h"

namespace tandem::tensor {

struct BlockIQ4_XS {
  static constexpr int kValues = 256;
  static constexpr int kGroupValues = 32;
  static constexpr int kGroups = 8;
  uint16_t d;           // half: scale of the scales
  uint16_t scales_h;    // upper 2 bits of the scales
  uint8_t scales_l[4];  // low 4 bits
  uint8_t qs[128];      // two values per byte

  // In [-32, 32).
  int Scale(int g) const {
    const int low = (scales_l[g / 2] >> (g % 2 * 4)) & 15;
    return (low | (((scales_h >> (2 * g)) & 3) << 4)) - 32;
  }
};
static_assert(sizeof(BlockIQ4_XS) == 136 && alignof(BlockIQ4_XS) == 2);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_IQ4_XS_H_
