// The eight 6-bit scales and eight 6-bit minimums that Q4_K and Q5_K pack into 12 bytes:
//   bytes 0-3:  scale[0..3] in the low 6 bits, upper 2 bits of scale[4..7] in the high 2
//   bytes 4-7:  min[0..3]   in the low 6 bits, upper 2 bits of min[4..7]   in the high 2
//   bytes 8-11: low 4 bits of scale[4..7] in the low half, of min[4..7] in the high half
// Layout: https://github.com/ggml-org/ggml (block_q4_K, block_q5_K).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_K_SCALES_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_K_SCALES_H_

#include <cstdint>

namespace tandem::tensor {

struct KScales {
  uint8_t bytes[12];

  // The 6-bit scale and minimum of group g in [0, 8).
  uint8_t Scale(int g) const {
    if (g < 4) return bytes[g] & 63;
    return static_cast<uint8_t>((bytes[g + 4] & 15) | ((bytes[g - 4] >> 6) << 4));
  }
  uint8_t Min(int g) const {
    if (g < 4) return bytes[g + 4] & 63;
    return static_cast<uint8_t>((bytes[g + 4] >> 4) | ((bytes[g] >> 6) << 4));
  }
};
static_assert(sizeof(KScales) == 12 && alignof(KScales) == 1);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_K_SCALES_H_
