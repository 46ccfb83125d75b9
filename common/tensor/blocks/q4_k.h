// Q4_K: 256 values of 4 bits in 8 groups of 32; each group has a 6-bit scale and a 6-bit minimum.
//
// value = (d * scale[g]) * q - (dmin * min[g]), for value i of group g = i / 32.
// Groups come in pairs: bytes qs[32 p .. 32 p + 31] hold group 2p in their low halves and group 2p
// + 1 in their high ones. Layout: https://github.com/ggml-org/ggml (block_q4_K).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_Q4_K_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_Q4_K_H_

#include <cstdint>

#include "common/tensor/blocks/k_scales.h"

namespace tandem::tensor {

struct BlockQ4_K {
  static constexpr int kValues = 256;
  static constexpr int kGroupValues = 32;
  static constexpr int kGroups = 8;
  uint16_t d;       // half: scale of the scales
  uint16_t dmin;    // half: scale of the minimums
  KScales scales;   // a scale and a minimum per group
  uint8_t qs[128];  // two values per byte

  // In [0, 16).
  int Value(int i) const { return (qs[i / 64 * 32 + i % 32] >> (i % 64 < 32 ? 0 : 4)) & 15; }
};
static_assert(sizeof(BlockQ4_K) == 144 && alignof(BlockQ4_K) == 2);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_Q4_K_H_
