// The figures of the grids, which golden blocks reach in part only.
#include "common/tensor/grids.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tandem::tensor {
namespace {

// FNV-1a of all values, entry by entry. Expected ones are of gguf-py's grids.
template <typename Grid>
uint64_t Checksum(const Grid& grid) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t entry = 0; entry < Grid::kEntries; ++entry) {
    for (size_t i = 0; i < Grid::kValues; ++i) {
      hash = (hash ^ grid.Value(entry, i)) * 0x100000001b3u;
    }
  }
  return hash;
}

TEST(GridsTest, FiguresAreThoseOfTheReference) {
  EXPECT_EQ(Checksum(kIq1Grid), 0x7d4cdde9801e8bdu);  // of 8 v + 16
  EXPECT_EQ(Checksum(kIq2XxsGrid), 0xbb4ee025b5ac6e8eu);
  EXPECT_EQ(Checksum(kIq2XsGrid), 0xc9b1ee61e79909bdu);
  EXPECT_EQ(Checksum(kIq2SGrid), 0x123edd38a3b62b90u);
  EXPECT_EQ(Checksum(kIq3XxsGrid), 0xdfa5dc83d6a155d5u);
  EXPECT_EQ(Checksum(kIq3SGrid), 0xfa37020c25b44829u);
}

TEST(GridsTest, TheEighthSignMakesTheirNumberEven) {
  for (uint32_t seven = 0; seven < 128; ++seven) {
    const uint8_t eight = WithEighthSign(seven);
    EXPECT_EQ(eight & 0x7f, static_cast<int>(seven));
    EXPECT_EQ(__builtin_popcount(eight) % 2, 0) << seven;
  }
}

}  // namespace
}  // namespace tandem::tensor
