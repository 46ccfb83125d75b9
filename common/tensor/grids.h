// Grids: the codebooks of IQ1, IQ2 and IQ3, as kernels look values up: an entry is one word, or two
// (grids of eight), and byte i of it is value i.
#ifndef TANDEM_COMMON_TENSOR_GRIDS_H_
#define TANDEM_COMMON_TENSOR_GRIDS_H_

#include <cstddef>
#include <cstdint>

#include "common/tensor/grid_codes.h"

namespace tandem::tensor {

// kValues of them in each of kEntries entries.
template <size_t kEntriesV, size_t kValuesV>
struct Grid {
  static constexpr size_t kEntries = kEntriesV;
  static constexpr size_t kValues = kValuesV;
  static constexpr size_t kWords = kValues / 4;  // of an entry

  // Value `i` of entry `entry`.
  constexpr uint8_t Value(size_t entry, size_t i) const {
    return static_cast<uint8_t>(words[entry * kWords + i / 4] >> (8 * (i % 4)) & 0xff);
  }

  alignas(64) uint32_t words[kEntries * kWords];
};

// Codes of kBits bits stand for the values of `of`.
template <size_t kValues, size_t kBits, size_t kEntries>
constexpr Grid<kEntries, kValues> MakeGrid(const uint16_t (&codes)[kEntries],
                                           const uint8_t (&of)[size_t{1} << kBits]) {
  Grid<kEntries, kValues> grid = {};
  for (size_t i = 0; i < kEntries * kValues; ++i) {
    const uint32_t code = codes[i / kValues] >> (i % kValues * kBits) & ((1u << kBits) - 1);
    grid.words[i / 4] |= uint32_t{of[code]} << (8 * (i % 4));
  }
  return grid;
}

// Of eight times -1, 0 and 1, plus 16: room for the eighth that IQ1 adds or subtracts.
inline constexpr int kIq1Offset = 16;
inline constexpr auto kIq1Grid = MakeGrid<8, 2>(kIq1Codes, {8, 16, 24});

// Of magnitudes.
inline constexpr auto kIq2XxsGrid = MakeGrid<8, 2>(kIq2XxsCodes, {8, 25, 43});
inline constexpr auto kIq2XsGrid = MakeGrid<8, 2>(kIq2XsCodes, {8, 25, 43});
inline constexpr auto kIq2SGrid = MakeGrid<8, 2>(kIq2SCodes, {8, 25, 43});
inline constexpr auto kIq3XxsGrid = MakeGrid<4, 3>(kIq3XxsCodes, {4, 12, 20, 28, 36, 44, 52, 62});
inline constexpr auto kIq3SGrid = MakeGrid<4, 3>(kIq3SCodes, {1, 3, 5, 7, 9, 11, 13, 15});

// IQ2_XXS, IQ2_XS and IQ3_XXS store the signs of seven of eight values: the eighth is such that an
// even number of them are set.
constexpr uint8_t WithEighthSign(uint32_t seven) {
  uint32_t odd = seven ^ seven >> 4;
  odd ^= odd >> 2;
  odd ^= odd >> 1;
  return static_cast<uint8_t>(seven | (odd & 1) << 7);
}

}  // namespace tandem::tensor

#endif  // TANDEM_COMMON_TENSOR_GRIDS_H_
