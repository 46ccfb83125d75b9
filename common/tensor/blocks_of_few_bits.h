// Weight formats of one or two bits with one scale per block. Layouts:
// https://github.com/ggml-org/ggml (block_q1_0 and so on). value = d * Value(i).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_OF_FEW_BITS_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_OF_FEW_BITS_H_

#include <cstdint>

namespace tandem::tensor {

// Q1_0: 128 values of -1 and 1: bit i % 8 of byte i / 8 is set for 1.
struct BlockQ1_0 {
  static constexpr int kValues = 128;
  uint16_t d;  // half
  uint8_t qs[16];

  int Value(int i) const { return (qs[i / 8] >> (i % 8) & 1) * 2 - 1; }
};
static_assert(sizeof(BlockQ1_0) == 18 && alignof(BlockQ1_0) == 2);

// Q2_0: 64 values of -1 to 2: two bits of byte i / 4, the first lowest, are one more.
struct BlockQ2_0 {
  static constexpr int kValues = 64;
  uint16_t d;  // half
  uint8_t qs[16];

  int Value(int i) const { return (qs[i / 4] >> (i % 4 * 2) & 3) - 1; }
};
static_assert(sizeof(BlockQ2_0) == 18 && alignof(BlockQ2_0) == 2);

// TQ1_0: 256 values of -1, 0 and 1 as digits to the base of three, five (or, in qh, four) to a
// byte. A byte is the fraction 0.d0 d1 d2 ... of 256, rounded up: d0 = byte * 3 / 256, and the
// byte times three, modulo 256, has the next digit. Digit k of byte j is value
//   32 k + j             of qs[0 .. 31]
//   160 + 16 k + j - 32  of qs[32 .. 47]
//   240 + 4 k + j        of qh
struct BlockTQ1_0 {
  static constexpr int kValues = 256;
  uint8_t qs[48];
  uint8_t qh[4];
  uint16_t d;  // half

  int Value(int i) const {
    if (i < 160) return Digit(qs[i % 32], i / 32) - 1;
    if (i < 240) return Digit(qs[32 + i % 16], (i - 160) / 16) - 1;
    return Digit(qh[i % 4], (i - 240) / 4) - 1;
  }

 private:
  static int Digit(uint32_t byte, int k) {
    for (; k > 0; --k) byte = byte * 3 & 0xff;
    return static_cast<int>(byte * 3 >> 8);
  }
};
static_assert(sizeof(BlockTQ1_0) == 54 && alignof(BlockTQ1_0) == 2);

// TQ2_0: 256 values of -1 to 2 in two bits, one less than them. Of each half of 128 values, value
// 32 k + l (k in 0..3, l in 0..31) lies in bits 2 k and 2 k + 1 of byte l, as in Q2_K.
struct BlockTQ2_0 {
  static constexpr int kValues = 256;
  uint8_t qs[64];
  uint16_t d;  // half

  int Value(int i) const { return (qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3) - 1; }
};
static_assert(sizeof(BlockTQ2_0) == 66 && alignof(BlockTQ2_0) == 2);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_OF_FEW_BITS_H_
