#include "kernels/host/philox.h"

#include <gtest/gtest.h>

namespace tandem::kernels::host {
namespace {

// Vectors that the generator's authors publish with Random123 (kat_vectors).
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kAll = 0xffffffff;
  EXPECT_EQ(Philox4x32({kAll, kAll, kAll, kAll}, {kAll, kAll}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, DrawsLieInTheUnitInterval) {
  double sum = 0;
  for (uint64_t i = 0; i < 10000; ++i) {
    const double u = UniformDraw(i % 7, i << 30);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

}  // namespace
}  // namespace tandem::kernels::host
