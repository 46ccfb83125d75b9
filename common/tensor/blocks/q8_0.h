// Q8_0: 32 values as signed bytes with one scale. value[i] = d * qs[i].
// Layout: https://github.com/ggml-org/ggml (block_q8_0).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_Q8_0_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_Q8_0_H_

#include <cstdint>

namespace tandem::tensor {

struct BlockQ8_0 {
  static constexpr int kValues = 32;
  uint16_t d;     // half: scale
  int8_t qs[32];  // value i in natural order
};
static_assert(sizeof(BlockQ8_0) == 34 && alignof(BlockQ8_0) == 2);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_Q8_0_H_
