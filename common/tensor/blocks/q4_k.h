// Q4_K: 256 values of 4 bits in 8 groups of 32; each group has a 6-bit scale and a 6-bit minimum.
//
// value = (d * scale[g]) * q - (dmin * min[g]), for value i of group g = i / 32.
// Groups come in pairs: bytes qs[32 p .. 32 p + 31] hold group 2p in their low halves and group 2p
// + 1 in their high ones. The 12 bytes of `scales` pack eight pairs of six bits:
//   bytes 0-3:  scale[0..3] in the low 6 bits, upper 2 bits of scale[4..7] in the high 2
//   bytes 4-7:  min[0..3]   in the low 6 bits, upper 2 bits of min[4..7]   in the high 2
//   bytes 8-11: low 4 bits of scale[4..7] in the low half, of min[4..7] in the high half
// Layout: https://github.com/ggml-org/ggml (block_q4_K).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_Q4_K_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_Q4_K_H_

#include <cstdint>

namespace tandem::tensor {

struct BlockQ4_K {
  static constexpr int kValues = 256;
  static constexpr int kGroupValues = 32;
  static constexpr int kGroups = 8;
  uint16_t d;          // half: scale of the scales
  uint16_t dmin;       // half: scale of the minimums
  uint8_t scales[12];  // packed 6-bit scales and minimums
  uint8_t qs[128];     // two values per byte

  // The 6-bit scale and minimum of group g in [0, 8).
  uint8_t Scale(int g) const {
    if (g < 4) return scales[g] & 63;
    return static_cast<uint8_t>((scales[g + 4] & 15) | ((scales[g - 4] >> 6) << 4));
  }
  uint8_t Min(int g) const {
    if (g < 4) return scales[g + 4] & 63;
    return static_cast<uint8_t>((scales[g + 4] >> 4) | ((scales[g] >> 6) << 4));
  }
};
static_assert(sizeof(BlockQ4_K) == 144 && alignof(BlockQ4_K) == 2);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_Q4_K_H_
