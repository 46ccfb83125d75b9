// Q4_0: 32 values of 4 bits with one scale. value[i] = d * (q[i] - 8).
// Byte j holds value j in its low half and value j + 16 in its high half.
// Layout: https://github.com/ggml-org/ggml (block_q4_0).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_Q4_0_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_Q4_0_H_

#include <cstdint>

namespace tandem::tensor {

struct BlockQ4_0 {
  static constexpr int kValues = 32;
  uint16_t d;      // half: scale
  uint8_t qs[16];  // two values per byte
};
static_assert(sizeof(BlockQ4_0) == 18 && alignof(BlockQ4_0) == 2);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_Q4_0_H_
