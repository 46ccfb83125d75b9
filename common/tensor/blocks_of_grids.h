// Weight formats in blocks of 256 values that are entries of grids (grids.h). Layouts:
// https://github.com/ggml-org/ggml (block_iq1_s and so on).
//
// An entry is kRun values, a run. value = d * kUnit * Scale(run) * v, for values v of
//   IQ2, IQ3  the entry, negative where bit i of Signs(run) is set
//   IQ1       the entry (less kIq1Offset), plus Eighth(run)
// Scale is odd: it is stored in three or four bits without its lowest.
#ifndef TANDEM_COMMON_TENSOR_BLOCKS_OF_GRIDS_H_
#define TANDEM_COMMON_TENSOR_BLOCKS_OF_GRIDS_H_

#include <cstdint>
#include <cstring>

#include "common/tensor/grids.h"

namespace tandem::tensor {

// Bits [from, from + width) of a little-endian number; formats with these are only 2-aligned.
inline uint32_t BitsOfWord(const uint8_t* word, int from, int width) {
  uint32_t bits;
  std::memcpy(&bits, word, sizeof(bits));
  return bits >> from & ((1u << width) - 1);
}

// IQ2_XXS: of each 32 values four bytes of indices, then a word: seven signs of each run, lowest
// first, and the four bits of the scale.
struct BlockIQ2_XXS {
  static constexpr int kValues = 256, kRun = 8, kGroupValues = 32;
  static constexpr float kUnit = 0.125f;
  static constexpr const auto& kGrid = kIq2XxsGrid;
  uint16_t d;      // half
  uint8_t qs[64];  // 8 bytes per 32 values

  uint32_t Index(int run) const { return qs[8 * (run / 4) + run % 4]; }
  uint32_t Signs(int run) const { return WithEighthSign(BitsOfWord(Tail(run), 7 * (run % 4), 7)); }
  int Scale(int run) const { return static_cast<int>(2 * BitsOfWord(Tail(run), 28, 4) + 1); }

 private:
  const uint8_t* Tail(int run) const { return qs + 8 * (run / 4) + 4; }
};
static_assert(sizeof(BlockIQ2_XXS) == 66 && alignof(BlockIQ2_XXS) == 2);

// IQ2_XS: a run is nine bits of index and seven signs; each 16 values have four bits of scale.
struct BlockIQ2_XS {
  static constexpr int kValues = 256, kRun = 8, kGroupValues = 16;
  static constexpr float kUnit = 0.125f;
  static constexpr const auto& kGrid = kIq2XsGrid;
  uint16_t d;         // half
  uint16_t qs[32];    // index in the low 9 bits
  uint8_t scales[8];  // first 16 values of 32 in the low half

  uint32_t Index(int run) const { return qs[run] & 511; }
  uint32_t Signs(int run) const { return WithEighthSign(qs[run] >> 9); }
  int Scale(int run) const { return 2 * (scales[run / 4] >> (run / 2 % 2 * 4) & 15) + 1; }
};
static_assert(sizeof(BlockIQ2_XS) == 74 && alignof(BlockIQ2_XS) == 2);

// IQ2_S: a run is ten bits of index and eight signs; each 16 values have four bits of scale.
struct BlockIQ2_S {
  static constexpr int kValues = 256, kRun = 8, kGroupValues = 16;
  static constexpr float kUnit = 0.125f;
  static constexpr const auto& kGrid = kIq2SGrid;
  uint16_t d;         // half
  uint8_t qs[32];     // low 8 bits of indices
  uint8_t signs[32];  // of a run each
  uint8_t qh[8];      // upper 2 bits of four indices, lowest first
  uint8_t scales[8];  // first 16 values of 32 in the low half

  uint32_t Index(int run) const {
    return qs[run] | (uint32_t{qh[run / 4]} >> (run % 4 * 2) & 3) << 8;
  }
  uint32_t Signs(int run) const { return signs[run]; }
  int Scale(int run) const { return 2 * (scales[run / 4] >> (run / 2 % 2 * 4) & 15) + 1; }
};
static_assert(sizeof(BlockIQ2_S) == 82 && alignof(BlockIQ2_S) == 2);

// IQ3_XXS: a byte of index per run; of each 32 values a word as in IQ2_XXS, with signs by eights.
struct BlockIQ3_XXS {
  static constexpr int kValues = 256, kRun = 4, kGroupValues = 32;
  static constexpr float kUnit = 0.25f;
  static constexpr const auto& kGrid = kIq3XxsGrid;
  uint16_t d;         // half
  uint8_t qs[64];     // indices
  uint8_t tails[32];  // a word per 32 values: seven signs of each eight, and the scale

  uint32_t Index(int run) const { return qs[run]; }
  uint32_t Signs(int run) const {
    const uint32_t seven = BitsOfWord(tails + run / 8 * 4, run / 2 % 4 * 7, 7);
    return WithEighthSign(seven) >> (run % 2 * 4);
  }
  int Scale(int run) const {
    return static_cast<int>(2 * BitsOfWord(tails + run / 8 * 4, 28, 4) + 1);
  }
};
static_assert(sizeof(BlockIQ3_XXS) == 98 && alignof(BlockIQ3_XXS) == 2);

// IQ3_S: nine bits of index and four signs per run; each 32 values have four bits of scale.
struct BlockIQ3_S {
  static constexpr int kValues = 256, kRun = 4, kGroupValues = 32;
  static constexpr float kUnit = 1;
  static constexpr const auto& kGrid = kIq3SGrid;
  uint16_t d;         // half
  uint8_t qs[64];     // low 8 bits of indices
  uint8_t qh[8];      // ninth bits, lowest first
  uint8_t signs[32];  // of two runs each
  uint8_t scales[4];  // first 32 values of 64 in the low half

  uint32_t Index(int run) const { return qs[run] | (uint32_t{qh[run / 8]} >> (run % 8) & 1) << 8; }
  uint32_t Signs(int run) const { return uint32_t{signs[run / 2]} >> (run % 2 * 4); }
  int Scale(int run) const { return 2 * (scales[run / 16] >> (run / 8 % 2 * 4) & 15) + 1; }
};
static_assert(sizeof(BlockIQ3_S) == 110 && alignof(BlockIQ3_S) == 2);

// IQ1_S: eleven bits of index per run; each 32 values have three bits of scale and one that says
// whether an eighth is subtracted.
struct BlockIQ1_S {
  static constexpr int kValues = 256, kRun = 8, kGroupValues = 32;
  static constexpr float kUnit = 0.125f;
  static constexpr const auto& kGrid = kIq1Grid;
  uint16_t d;      // half
  uint8_t qs[32];  // low 8 bits of indices
  uint16_t qh[8];  // upper 3 bits of four indices, lowest first; then scale and eighth

  uint32_t Index(int run) const {
    return qs[run] | (uint32_t{qh[run / 4]} >> (run % 4 * 3) & 7) << 8;
  }
  int Eighth(int run) const { return qh[run / 4] >> 15 != 0 ? -1 : 1; }
  int Scale(int run) const { return 2 * (qh[run / 4] >> 12 & 7) + 1; }
};
static_assert(sizeof(BlockIQ1_S) == 50 && alignof(BlockIQ1_S) == 2);

// IQ1_M: eleven bits of index per run and one that says whether an eighth is subtracted; each 16
// values have three bits of scale. Their scale, a half, lies in the top four bits of `scales`.
struct BlockIQ1_M {
  static constexpr int kValues = 256, kRun = 8, kGroupValues = 16;
  static constexpr float kUnit = 0.125f;
  static constexpr const auto& kGrid = kIq1Grid;
  uint8_t qs[32];      // low 8 bits of indices
  uint8_t qh[16];      // of two runs each: upper 3 bits of the index, then the eighth
  uint16_t scales[4];  // of 16 values three bits each, and four bits of the half

  uint32_t Index(int run) const {
    return qs[run] | (uint32_t{qh[run / 2]} >> (run % 2 * 4) & 7) << 8;
  }
  int Eighth(int run) const { return (qh[run / 2] >> (run % 2 * 4) & 8) != 0 ? -1 : 1; }
  int Scale(int run) const { return 2 * (scales[run / 8] >> (run / 2 % 4 * 3) & 7) + 1; }
  uint16_t Half() const {
    return static_cast<uint16_t>(scales[0] >> 12 | (scales[1] >> 12) << 4 | (scales[2] >> 12) << 8 |
                                 (scales[3] >> 12) << 12);
  }
};
static_assert(sizeof(BlockIQ1_M) == 56 && alignof(BlockIQ1_M) == 2);

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_BLOCKS_OF_GRIDS_H_
