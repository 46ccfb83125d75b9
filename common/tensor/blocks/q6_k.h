// Q6_K: 256 values of 6 bits in 16 groups of 16, each with a signed 8-bit scale.
//
// value[i] = (d * scales[i / 16]) * (q[i] - 32).
// The block is two halves of 128 values; half h uses ql[64 h ..], qh[32 h ..]. Within a half, value
// 32 k + l (k in 0..3, l in 0..31) has
//   its low 4 bits in  ql[l + 32 (k % 2)], low half of the byte for k < 2, high half else
//   its high 2 bits in qh[l], bits 2 k and 2 k + 1
// Layout: https://github.com/ggml-org/ggml (block_q6_K).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_Q6_K_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_Q6_K_H_

#include <cstdint>

namespace tandem::tensor {

struct BlockQ6_K {
  static constexpr int kValues = 256;
  static constexpr int kGroupValues = 16;
  static constexpr int kGroups = 16;
  uint8_t ql[128];    // low 4 bits
  uint8_t qh[64];     // high 2 bits
  int8_t scales[16];  // one per group
  uint16_t d;         // half: scale of the scales
};
static_assert(sizeof(BlockQ6_K) == 210 && alignof(BlockQ6_K) == 2);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_Q6_K_H_
