// IQ4_NL: 32 values of 4 bits with one scale. value[i] = d * codebook[q[i]], kIq4Codebook.
// Byte j holds value j in its low half and value j + 16 in its high half.
// Layout: https://github.com/ggml-org/ggml (block_iq4_nl).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_IQ4_NL_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_IQ4_NL_H_

#include <cstdint>

#include "common/tensor/blocks/codebook.h"

namespace tandem::tensor {

struct BlockIQ4_NL {
  static constexpr int kValues = 32;
  uint16_t d;      // half: scale
  uint8_t qs[16];  // two values per byte
};
static_assert(sizeof(BlockIQ4_NL) == 18 && alignof(BlockIQ4_NL) == 2);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_IQ4_NL_H_
