// Q5_K: 256 values of 5 bits in 8 groups of 32; each group has a 6-bit scale and a 6-bit minimum.
//
// value = (d * scale[g]) * q - (dmin * min[g]), for value i of group g = i / 32.
// Low four bits as in Q4_K: bytes qs[32 p .. 32 p + 31] hold those of group 2p in their low halves
// and of group 2p + 1 in their high ones. Bit g of qh[l] is the fifth bit of value l of group g.
// Layout: https://github.com/ggml-org/ggml (block_q5_K).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_Q5_K_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_Q5_K_H_

#include <cstdint>

#include "common/tensor/blocks/k_scales.h"

namespace tandem::tensor {

struct BlockQ5_K {
  static constexpr int kValues = 256;
  static constexpr int kGroupValues = 32;
  static constexpr int kGroups = 8;
  uint16_t d;       // half: scale of the scales
  uint16_t dmin;    // half: scale of the minimums
  KScales scales;   // a scale and a minimum per group
  uint8_t qh[32];   // fifth bits
  uint8_t qs[128];  // low four bits, two values per byte

  // In [0, 32).
  int Value(int i) const {
    const int low = (qs[i / 64 * 32 + i % 32] >> (i % 64 < 32 ? 0 : 4)) & 15;
    return low | (((qh[i % 32] >> (i / 32)) & 1) << 4);
  }
};
static_assert(sizeof(BlockQ5_K) == 176 && alignof(BlockQ5_K) == 2);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_Q5_K_H_
