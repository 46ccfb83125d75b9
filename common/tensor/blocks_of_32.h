// Weight formats in blocks of 32 values. Layouts: https://github.com/ggml-org/ggml (block_q4_0 and
// so on).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_OF_32_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_OF_32_H_

#include <cstdint>
#include <cstring>

#include "common/tensor/codebook.h"

namespace tandem::tensor {

// Q8_0: 32 values as signed bytes with one scale. value[i] = d * qs[i].
struct BlockQ8_0 {
  static constexpr int kValues = 32;
  uint16_t d;     // half: scale
  int8_t qs[32];  // value i in natural order
};
static_assert(sizeof(BlockQ8_0) == 34 && alignof(BlockQ8_0) == 2);

// Q4_0: 32 values of 4 bits with one scale. value[i] = d * (q[i] - 8).
// Byte j holds value j in its low half and value j + 16 in its high half.
struct BlockQ4_0 {
  static constexpr int kValues = 32;
  uint16_t d;      // half: scale
  uint8_t qs[16];  // two values per byte
};
static_assert(sizeof(BlockQ4_0) == 18 && alignof(BlockQ4_0) == 2);

// Q4_1: 32 values of 4 bits with one scale and one offset. value[i] = d * q[i] + m.
// Byte j holds value j in its low half and value j + 16 in its high half.
struct BlockQ4_1 {
  static constexpr int kValues = 32;
  uint16_t d;      // half: scale
  uint16_t m;      // half: offset
  uint8_t qs[16];  // two values per byte
};
static_assert(sizeof(BlockQ4_1) == 20 && alignof(BlockQ4_1) == 2);

// Q5_0: 32 values of 5 bits with one scale. value[i] = d * (q[i] - 16).
// Byte j of qs holds the low four bits of value j (low half) and of value j + 16 (high half); bit i
// of the little-endian 32-bit number qh is the fifth bit of value i.
struct BlockQ5_0 {
  static constexpr int kValues = 32;
  uint16_t d;      // half: scale
  uint8_t qh[4];   // fifth bits, little-endian; bytes because the block is only 2-aligned
  uint8_t qs[16];  // low four bits, two values per byte

  uint32_t HighBits() const {
    uint32_t bits;
    std::memcpy(&bits, qh, sizeof(bits));
    return bits;
  }
};
static_assert(sizeof(BlockQ5_0) == 22 && alignof(BlockQ5_0) == 2);

// Q5_1: 32 values of 5 bits with one scale and one offset. value[i] = d * q[i] + m.
// Byte j of qs holds the low four bits of value j (low half) and of value j + 16 (high half); bit i
// of the little-endian 32-bit number qh is the fifth bit of value i.
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

// IQ4_NL: 32 values of 4 bits with one scale. value[i] = d * codebook[q[i]], kIq4Codebook.
// Byte j holds value j in its low half and value j + 16 in its high half.
struct BlockIQ4_NL {
  static constexpr int kValues = 32;
  uint16_t d;      // half: scale
  uint8_t qs[16];  // two values per byte
};
static_assert(sizeof(BlockIQ4_NL) == 18 && alignof(BlockIQ4_NL) == 2);

// MXFP4: 32 values of FP4 (E2M1) with one power of two as their scale.
//
// value[i] = 2^(e - 128) * codebook[q[i]], kMxfp4Codebook, whose values are doubled: the standard's
// scale is 2^(e - 127). Byte j holds value j in its low half and value j + 16 in its high half.
// In the standard e = 255 is NaN; here, as in ggml, it is an ordinary power of two.
// Source: Open Compute Project, "OCP Microscaling Formats (MX) Specification", MXFP4.
struct BlockMXFP4 {
  static constexpr int kValues = 32;
  uint8_t e;       // exponent of the scale
  uint8_t qs[16];  // two values per byte
};
static_assert(sizeof(BlockMXFP4) == 17 && alignof(BlockMXFP4) == 1);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_OF_32_H_
