// Q5_1: 32 values of 5 bits with one scale and one offset. value[i] = d * q[i] + m.
// Byte j of qs holds the low four bits of value j (low half) and of value j + 16 (high half); bit i
// of the little-endian 32-bit number qh is the fifth bit of value i. Layout:
// https://github.com/ggml-org/ggml (block_q5_1).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_Q5_1_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_Q5_1_H_

#include <cstdint>
#include <cstring>

namespace tandem::tensor {

struct BlockQ5_1 {
  static constexpr int kValues = 32;
  uint16_t d;      // half: scale
  uint16_t m;      // half: offset
  uint8_t qh[4];   // fifth bits, little-endian; bytes because the block is only 2-aligned
  uint8_t qs[16];  // low four bits, two values per byte

  uint32_t HighBits() const {
    uint32_t bits;
    std::memcpy(&bits, qh, sizeof(bits));
    return bits;
  }
};
static_assert(sizeof(BlockQ5_1) == 24 && alignof(BlockQ5_1) == 2);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_Q5_1_H_
