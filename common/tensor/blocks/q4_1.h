// Q4_1: 32 values of 4 bits with one scale and one offset. value[i] = d * q[i] + m.
// Byte j holds value j in its low half and value j + 16 in its high half.
// Layout: https://github.com/ggml-org/ggml (block_q4_1).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_Q4_1_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_Q4_1_H_

#include <cstdint>

namespace tandem::tensor {

struct BlockQ4_1 {
  static constexpr int kValues = 32;
  uint16_t d;      // half: scale
  uint16_t m;      // half: offset
  uint8_t qs[16];  // two values per byte
};
static_assert(sizeof(BlockQ4_1) == 20 && alignof(BlockQ4_1) == 2);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_Q4_1_H_
