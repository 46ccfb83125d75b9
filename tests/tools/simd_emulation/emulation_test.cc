// What is easily mistaken in the emulated intrinsics, by values worked out from Intel's Intrinsics
// Guide and, of special cases, its Software Developer's Manual.
#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"
#include "tools/simd_emulation/bytes_and_pairs.h"
#include "tools/simd_emulation/floats.h"
#include "tools/simd_emulation/integers.h"
#include "tools/simd_emulation/lanes.h"
#include "tools/simd_emulation/moves.h"

namespace tandem {
namespace {

using simd_emulation::FromLanes;
using simd_emulation::Lanes;

constexpr int kFloor = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

__m512i Counting(int first) {
  return FromLanes<__m512i, int32_t>([first](size_t i) { return first + static_cast<int>(i); });
}
float Reduced(float x) { return _mm512_reduce_ps(_mm512_set1_ps(x), kFloor)[0]; }
float Scaled(float x, float by) {
  return _mm512_scalef_ps(_mm512_set1_ps(x), _mm512_set1_ps(by))[0];
}
// Words of two BF16, the lower half first.
__m512bh Bf16Pairs(float low, float high) {
  const __m512 a = _mm512_set1_ps(low), b = _mm512_set1_ps(high);
  const auto halves = Lanes<uint16_t>(_mm512_cvtne2ps_pbh(b, a));
  return FromLanes<__m512bh, uint16_t>([&](size_t i) { return halves[i % 2 == 0 ? 0 : 16]; });
}

TEST(SimdEmulation, TernaryLogicTakesTheFirstOperandForTheHighestBitOfTheRow) {
  const __m512i a = _mm512_set1_epi32(0xf0), b = _mm512_set1_epi32(0xcc),
                c = _mm512_set1_epi32(0xaa);
  for (const int table : {0xf0, 0xcc, 0xaa, 0x96, 0xca, 0x01}) {
    const auto lanes = Lanes<uint32_t>(_mm512_ternarylogic_epi32(a, b, c, table));
    EXPECT_EQ(lanes[3] & 0xff, static_cast<uint32_t>(table));
  }
}

TEST(SimdEmulation, PermutationsTakeTheIndexFirstOrBetweenOperands) {
  const auto ascending = FromLanes<__m512i, uint8_t>([](size_t i) { return i; });
  const auto descending = FromLanes<__m512i, uint8_t>([](size_t i) { return 63 - i; });
  EXPECT_EQ(Lanes<uint8_t>(_mm512_permutexvar_epi8(_mm512_set1_epi8(5), descending))[0], 58);
  // Bit 6 chooses the second operand; bit 7 counts for nothing.
  EXPECT_EQ(Lanes<uint8_t>(_mm512_permutex2var_epi8(ascending, _mm512_set1_epi8(5), descending))[9],
            5);
  EXPECT_EQ(
      Lanes<uint8_t>(_mm512_permutex2var_epi8(ascending, _mm512_set1_epi8(69), descending))[9], 58);
  EXPECT_EQ(
      Lanes<uint8_t>(_mm512_permutex2var_epi8(ascending, _mm512_set1_epi8(-59), descending))[9],
      58);
  const __m512 low = _mm512_cvtepi32_ps(Counting(0)), high = _mm512_cvtepi32_ps(Counting(100));
  EXPECT_EQ(_mm512_permutex2var_ps(low, Counting(8), high)[7], 15);
  EXPECT_EQ(_mm512_permutex2var_ps(low, Counting(8), high)[8], 100);
}

TEST(SimdEmulation, ShufflesOfQuartersTakeTwoOfEachOperand) {
  const auto lanes =
      Lanes<int32_t>(_mm512_shuffle_i64x2(Counting(0), Counting(100), 0b11'00'01'10));
  EXPECT_EQ(lanes[0], 8);
  EXPECT_EQ(lanes[4], 4);
  EXPECT_EQ(lanes[8], 100);
  EXPECT_EQ(lanes[12], 112);
}

TEST(SimdEmulation, ByteProductsAreOfUnsignedWithSignedAndDoNotSaturate) {
  const __m512i sum = _mm512_set1_epi32(7);
  EXPECT_EQ(
      Lanes<int32_t>(_mm512_dpbusd_epi32(sum, _mm512_set1_epi8(-1), _mm512_set1_epi8(-128)))[5],
      7 - 4 * 255 * 128);
  EXPECT_EQ(Lanes<int32_t>(_mm256_dpbusd_avx_epi32(_mm256_set1_epi32(7), _mm256_set1_epi8(-1),
                                                   _mm256_set1_epi8(127)))[5],
            7 + 4 * 255 * 127);
}

TEST(SimdEmulation, Bf16IsRoundedToEvenAndTheSecondOperandComesFirst) {
  const auto halves =
      Lanes<uint16_t>(_mm512_cvtne2ps_pbh(_mm512_set1_ps(2.0f), _mm512_set1_ps(0x1.01p0f)));
  EXPECT_EQ(halves[0], 0x3f80);  // between 0x3f80 and 0x3f81
  EXPECT_EQ(halves[31], 0x4000);
  EXPECT_EQ(
      Lanes<uint16_t>(_mm512_cvtne2ps_pbh(_mm512_set1_ps(0x1.03p0f), _mm512_set1_ps(1e-40f)))[31],
      0x3f82);
  EXPECT_EQ(Lanes<uint16_t>(_mm512_cvtne2ps_pbh(_mm512_set1_ps(1), _mm512_set1_ps(-1e-40f)))[0],
            0x8000);
}

TEST(SimdEmulation, ProductsOfBf16AddTheUpperHalfFirst) {
  // 2^25 + 1 + -2^25: 1 is lost beside the larger, unless it is added last.
  const __m512 large = _mm512_set1_ps(0x1p25f);
  const __m512bh one = Bf16Pairs(1, 1);
  EXPECT_EQ(_mm512_dpbf16_ps(large, Bf16Pairs(1, -0x1p25f), one)[4], 1);
  EXPECT_EQ(_mm512_dpbf16_ps(large, Bf16Pairs(-0x1p25f, 1), one)[4], 0);
}

TEST(SimdEmulation, WhatTheFloorLeavesIsBelowOne) {
  EXPECT_EQ(Reduced(2.75f), 0.75f);
  EXPECT_EQ(Reduced(-2.75f), 0.25f);
  EXPECT_EQ(Reduced(-1e-30f), 0x1.fffffep-1f);
  // 1 - 2^-24 - 2^-26, rounded down.
  EXPECT_EQ(Reduced(-0x1.4p-24f), 0x1.fffffcp-1f);
  EXPECT_EQ(Reduced(3), 0);
  EXPECT_TRUE(std::signbit(Reduced(3)));
  EXPECT_EQ(Reduced(-kInfinity), 0);
  EXPECT_TRUE(std::isnan(Reduced(NAN)));
}

TEST(SimdEmulation, ScalesByTwoToTheFloor) {
  EXPECT_EQ(Scaled(3, 2.9f), 12);
  EXPECT_EQ(Scaled(3, -0.1f), 1.5f);
  EXPECT_EQ(Scaled(0, 5000), 0);
  EXPECT_EQ(Scaled(kInfinity, -5000), kInfinity);
  EXPECT_EQ(Scaled(1, -kInfinity), 0);
  EXPECT_EQ(Scaled(0x1.8p0f, -149), 0x1p-148f);  // rounded once, to even
}

TEST(SimdEmulation, MasksChooseTheSecondOperand) {
  EXPECT_EQ(Lanes<int32_t>(_mm512_mask_blend_epi32(0b10, Counting(0), Counting(100)))[1], 101);
  EXPECT_EQ(Lanes<int32_t>(_mm512_mask_blend_epi32(0b10, Counting(0), Counting(100)))[2], 2);
  const __m512 nan = _mm512_set1_ps(NAN), one = _mm512_set1_ps(1);
  EXPECT_EQ(_mm512_cmp_ps_mask(nan, one, _CMP_LT_OQ), 0);
  EXPECT_EQ(_mm512_cmp_ps_mask(nan, one, _CMP_NLT_UQ), 0xffff);
  EXPECT_EQ(_mm512_cmp_ps_mask(nan, one, _CMP_UNORD_Q), 0xffff);
  EXPECT_EQ(_mm512_maskz_compress_ps(0b1010, _mm512_cvtepi32_ps(Counting(0)))[1], 3);
  EXPECT_EQ(_mm512_maskz_compress_ps(0b1010, _mm512_cvtepi32_ps(Counting(0)))[2], 0);
}

}  // namespace
}  // namespace tandem
