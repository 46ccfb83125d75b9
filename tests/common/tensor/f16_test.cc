#include "common/tensor/f16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tandem::tensor {
namespace {

// The definition, in double arithmetic: sign * 2^(e - 15) * 1.m, or m * 2^-24.
double DefinedHalf(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int mantissa = half & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

TEST(HalfTest, EveryHalfMatchesTheDefinitionAndComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = HalfToFloat(half);
    if ((half & 0x7c00) == 0x7c00) {
      EXPECT_EQ(std::isnan(value), (half & 0x3ff) != 0) << bits;
      EXPECT_EQ(std::isinf(value), (half & 0x3ff) == 0) << bits;
      EXPECT_EQ(std::signbit(value), (half & 0x8000) != 0) << bits;
      if (std::isinf(value)) {
        EXPECT_EQ(FloatToHalf(value), half);
      } else {
        EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value)))) << bits;
      }
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), DefinedHalf(half)) << bits;
    ASSERT_EQ(std::signbit(value), (half & 0x8000) != 0) << bits;
    ASSERT_EQ(FloatToHalf(value), half) << bits;
  }
}

TEST(HalfTest, RoundsToNearestTiesToEvenBetweenAllNeighbours) {
  for (uint16_t half = 0; half < 0x7bff; ++half) {
    const double low = DefinedHalf(half);
    const double high = DefinedHalf(static_cast<uint16_t>(half + 1));
    const auto middle = static_cast<float>((low + high) / 2);  // exact in a float
    const uint16_t even = half % 2 == 0 ? half : static_cast<uint16_t>(half + 1);
    ASSERT_EQ(FloatToHalf(middle), even) << half;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, 0.0f)), half) << half;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, 1e9f)), half + 1) << half;
    ASSERT_EQ(FloatToHalf(-middle), even | 0x8000) << half;
  }
}

TEST(HalfTest, TooLargeBecomesInfinity) {
  EXPECT_EQ(FloatToHalf(65519.996f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(-1e30f), 0xfc00);
  EXPECT_EQ(FloatToHalf(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(Bf16Test, EveryBf16ComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = Bf16ToFloat(static_cast<uint16_t>(bits));
    EXPECT_EQ(std::bit_cast<uint32_t>(value), bits << 16);
    if (!std::isnan(value)) {
      ASSERT_EQ(FloatToBf16(value), bits);
    }
  }
}

TEST(Bf16Test, RoundsToNearestTiesToEven) {
  EXPECT_EQ(FloatToBf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // tie, even below
  EXPECT_EQ(FloatToBf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // tie, even above
  EXPECT_EQ(FloatToBf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_TRUE(std::isnan(Bf16ToFloat(FloatToBf16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace tandem::tensor
