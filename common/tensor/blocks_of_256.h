// Weight formats in blocks of 256 values, which groups of 16 or 32 divide. Layouts:
// https://github.com/ggml-org/ggml (block_q2_K and so on).
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_OF_256_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_OF_256_H_

#include <cstdint>

#include "common/tensor/codebook.h"

namespace tandem::tensor {

// The eight 6-bit scales and eight 6-bit minimums that Q4_K and Q5_K pack into 12 bytes:
//   bytes 0-3:  scale[0..3] in the low 6 bits, upper 2 bits of scale[4..7] in the high 2
//   bytes 4-7:  min[0..3]   in the low 6 bits, upper 2 bits of min[4..7]   in the high 2
//   bytes 8-11: low 4 bits of scale[4..7] in the low half, of min[4..7] in the high half
struct KScales {
  uint8_t bytes[12];

  // The 6-bit scale and minimum of group g in [0, 8).
  uint8_t Scale(int g) const {
    if (g < 4) return bytes[g] & 63;
    return static_cast<uint8_t>((bytes[g + 4] & 15) | ((bytes[g - 4] >> 6) << 4));
  }
  uint8_t Min(int g) const {
    if (g < 4) return bytes[g + 4] & 63;
    return static_cast<uint8_t>((bytes[g + 4] >> 4) | ((bytes[g] >> 6) << 4));
  }
};
static_assert(sizeof(KScales) == 12 && alignof(KScales) == 1);

// Q2_K: 256 values of 2 bits in 16 groups of 16; each group has a 4-bit scale and a 4-bit minimum.
//
// value = (d * scale[g]) * q - (dmin * min[g]), for value i of group g = i / 16.
// The block is two halves of 128 values; half h uses qs[32 h ..]. Within a half, value 32 k + l (k
// in 0..3, l in 0..31) lies in bits 2 k and 2 k + 1 of qs[l].
struct BlockQ2_K {
  static constexpr int kValues = 256;
  static constexpr int kGroupValues = 16;
  static constexpr int kGroups = 16;
  uint8_t scales[16];  // per group: scale in the low half, minimum in the high half
  uint8_t qs[64];      // four values per byte
  uint16_t d;          // half: scale of the scales
  uint16_t dmin;       // half: scale of the minimums

  uint8_t Scale(int g) const { return scales[g] & 15; }
  uint8_t Min(int g) const { return scales[g] >> 4; }
  // In [0, 4).
  uint8_t Value(int i) const { return (qs[32 * (i / 128) + i % 32] >> (i % 128 / 32 * 2)) & 3; }
};
static_assert(sizeof(BlockQ2_K) == 84 && alignof(BlockQ2_K) == 2);

// Q3_K: 256 values of 3 bits in 16 groups of 16, each with a signed 6-bit scale.
//
// value = (d * scale[g]) * (q - 4), for value i of group g = i / 16.
// The block is two halves of 128 values. Value 32 k + l of half h (k in 0..3, l in 0..31) has
//   its low 2 bits in qs[32 h + l], bits 2 k and 2 k + 1
//   its third bit in  hmask[l], bit 4 h + k
// The 12 bytes of `scales` pack sixteen numbers of six bits, each 32 more than the scale:
//   bytes 0-7:  low 4 bits of 0..7 in the low halves, of 8..15 in the high halves
//   bytes 8-11: byte 8 + j has the upper 2 bits of j, j + 4, j + 8, j + 12, lowest first
struct BlockQ3_K {
  static constexpr int kValues = 256;
  static constexpr int kGroupValues = 16;
  static constexpr int kGroups = 16;
  uint8_t hmask[32];   // third bits
  uint8_t qs[64];      // low two bits, four values per byte
  uint8_t scales[12];  // packed 6-bit scales
  uint16_t d;          // half: scale of the scales

  // In [-32, 32).
  int Scale(int g) const {
    const int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
    const int high = (scales[8 + g % 4] >> (g / 4 * 2)) & 3;
    return (low | (high << 4)) - 32;
  }
  // In [0, 8).
  int Value(int i) const {
    const int low = (qs[32 * (i / 128) + i % 32] >> (i % 128 / 32 * 2)) & 3;
    return low | (((hmask[i % 32] >> (i / 32)) & 1) << 2);
  }
};
static_assert(sizeof(BlockQ3_K) == 110 && alignof(BlockQ3_K) == 2);

// Q4_K: 256 values of 4 bits in 8 groups of 32; each group has a 6-bit scale and a 6-bit minimum.
//
// value = (d * scale[g]) * q - (dmin * min[g]), for value i of group g = i / 32.
// Groups come in pairs: bytes qs[32 p .. 32 p + 31] hold group 2p in their low halves and group 2p
// + 1 in their high ones.
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

// Q5_K: 256 values of 5 bits in 8 groups of 32; each group has a 6-bit scale and a 6-bit minimum.
//
// value = (d * scale[g]) * q - (dmin * min[g]), for value i of group g = i / 32.
// Low four bits as in Q4_K: bytes qs[32 p .. 32 p + 31] hold those of group 2p in their low halves
// and of group 2p + 1 in their high ones. Bit g of qh[l] is the fifth bit of value l of group g.
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

// Q6_K: 256 values of 6 bits in 16 groups of 16, each with a signed 8-bit scale.
//
// value[i] = (d * scales[i / 16]) * (q[i] - 32).
// The block is two halves of 128 values; half h uses ql[64 h ..], qh[32 h ..]. Within a half, value
// 32 k + l (k in 0..3, l in 0..31) has
//   its low 4 bits in  ql[l + 32 (k % 2)], low half of the byte for k < 2, high half else
//   its high 2 bits in qh[l], bits 2 k and 2 k + 1
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

// IQ4_XS: 256 values of 4 bits in 8 groups of 32, each with a signed 6-bit scale.
//
// value = (d * scale[g]) * codebook[q], kIq4Codebook, for value i of group g = i / 32.
// Bytes qs[16 g .. 16 g + 15] are group g: byte j holds its value j in the low half and its value
// j + 16 in the high half. Each scale is stored 32 too large: its low 4 bits in scales_l[g / 2]
// (low half of the byte for even g), its upper 2 bits in bits 2 g, 2 g + 1 of scales_h.
struct BlockIQ4_XS {
  static constexpr int kValues = 256;
  static constexpr int kGroupValues = 32;
  static constexpr int kGroups = 8;
  uint16_t d;           // half: scale of the scales
  uint16_t scales_h;    // upper 2 bits of the scales
  uint8_t scales_l[4];  // low 4 bits
  uint8_t qs[128];      // two values per byte

  // In [-32, 32).
  int Scale(int g) const {
    const int low = (scales_l[g / 2] >> (g % 2 * 4)) & 15;
    return (low | (((scales_h >> (2 * g)) & 3) << 4)) - 32;
  }
};
static_assert(sizeof(BlockIQ4_XS) == 136 && alignof(BlockIQ4_XS) == 2);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_OF_256_H_
