// Quantised activations beside the definition of QuantBlock, value by value.
#include "kernels/cpu/matmul/quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/isa.h"

namespace tandem::kernels::cpu {
namespace {

constexpr uint32_t kValues = QuantBlock::kValues;

std::vector<float> NormalValues(uint32_t count) {
  std::mt19937 random(count);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Of 32 finite values. Blocks stand in vectors: gcc 12 does not align those in the frames of ASan's
// fake stack (gcc bug 110027).
void Quantise(const float* x, QuantBlock& block) {
  float amax = 0.0f;
  for (uint32_t i = 0; i < kValues; ++i) amax = std::max(amax, std::fabs(x[i]));
  const bool zero = amax < 0x1p-100f;
  block.d = zero ? 0.0f : amax / 127.0f;
  const float inverse = zero ? 0.0f : 127.0f / amax;
  for (uint32_t i = 0; i < kValues; ++i) {
    block.q[i] = static_cast<int8_t>(std::nearbyint(x[i] * inverse));
    block.neg_sum -= block.q[i];
    block.neg_half_sum[i / 16] -= block.q[i];
    block.neg_half_pair_sum[i / 16][i / 2 % 2] -= block.q[i];
    block.neg_pair_sum[i / 2 % 2] -= block.q[i];
  }
  block.d_sum = block.d * static_cast<float>(-block.neg_sum);
}

std::vector<QuantBlock> Quantised(const float* x, uint32_t count, uint32_t lead, uint32_t blocks) {
  std::vector<float> window(size_t{blocks} * kValues);
  std::copy(x, x + count, window.begin() + lead);
  std::vector<QuantBlock> out(blocks);
  for (uint32_t b = 0; b < blocks; ++b) Quantise(window.data() + b * kValues, out[b]);
  return out;
}

void ExpectSame(const QuantBlock& got, const QuantBlock& wanted, const std::string& where) {
  for (uint32_t i = 0; i < kValues; ++i) EXPECT_EQ(got.q[i], wanted.q[i]) << where << ", " << i;
  EXPECT_EQ(got.d, wanted.d) << where;
  EXPECT_EQ(got.d_sum, wanted.d_sum) << where;
  EXPECT_EQ(got.neg_sum, wanted.neg_sum) << where;
  EXPECT_EQ(got.neg_half_sum[0], wanted.neg_half_sum[0]) << where;
  EXPECT_EQ(got.neg_half_sum[1], wanted.neg_half_sum[1]) << where;
  for (int k = 0; k < 2; ++k) {
    EXPECT_EQ(got.neg_pair_sum[k], wanted.neg_pair_sum[k]) << where << ", " << k;
    EXPECT_EQ(got.neg_half_pair_sum[0][k], wanted.neg_half_pair_sum[0][k]) << where << ", " << k;
    EXPECT_EQ(got.neg_half_pair_sum[1][k], wanted.neg_half_pair_sum[1][k]) << where << ", " << k;
  }
}

class QuantizerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!MissingInstructions(Isa::kAvx2).empty()) GTEST_SKIP() << "needs AVX2";
  }
};

struct Row {
  uint32_t count, lead, blocks;
};

// Rows of a few blocks and of many, whole and in part, one after another.
TEST_F(QuantizerTest, AnyRowsAreWhatTheirBlocksAreAlone) {
  const std::vector<Row> rows = {{32, 0, 1},   {1, 0, 1},    {31, 1, 1},   {64, 0, 2},
                                 {33, 31, 2},  {100, 40, 8}, {896, 0, 28}, {96, 64, 8},
                                 {250, 17, 9}, {32, 96, 4}};
  const std::vector<float> x = NormalValues(1024);
  for (size_t first = 0; first < rows.size(); ++first) {
    std::vector<std::vector<QuantBlock>> out;
    for (size_t i = first; i < rows.size(); ++i) out.emplace_back(rows[i].blocks);
    {
      Quantizer quantizer;
      for (size_t i = first; i < rows.size(); ++i) {
        const Row& row = rows[i];
        quantizer.AddRow(x.data() + i, row.count, row.lead, row.blocks, out[i - first].data());
      }
    }
    for (size_t i = first; i < rows.size(); ++i) {
      const Row& row = rows[i];
      const auto wanted = Quantised(x.data() + i, row.count, row.lead, row.blocks);
      for (uint32_t b = 0; b < row.blocks; ++b) {
        ExpectSame(out[i - first][b], wanted[b],
                   "row " + std::to_string(i) + ", block " + std::to_string(b));
      }
    }
  }
}

TEST_F(QuantizerTest, FinishWritesWhatWasAddedAndMoreMayFollow) {
  const std::vector<float> x = NormalValues(96);
  std::vector<QuantBlock> out(3);
  Quantizer quantizer;
  quantizer.AddRow(x.data(), 32, 0, 1, &out[0]);
  quantizer.Finish();
  ExpectSame(out[0], Quantised(x.data(), 32, 0, 1)[0], "block 0");
  // Later rows, whole and in part, do not touch it.
  out[0].d = -1;
  quantizer.AddRow(x.data() + 32, 20, 5, 1, &out[1]);
  quantizer.AddRow(x.data() + 64, 32, 0, 1, &out[2]);
  quantizer.Finish();
  EXPECT_EQ(out[0].d, -1);
  ExpectSame(out[1], Quantised(x.data() + 32, 20, 5, 1)[0], "block 1");
  ExpectSame(out[2], Quantised(x.data() + 64, 32, 0, 1)[0], "block 2");
}

TEST_F(QuantizerTest, TinyValuesAreZeros) {
  std::vector<float> x(64, 0x1p-101f);
  x[40] = -0x1p-100f;
  std::vector<QuantBlock> out(2), zero(1);
  Quantizer().AddRow(x.data(), 64, 0, 2, out.data());
  ExpectSame(out[0], zero[0], "below");
  EXPECT_EQ(out[1].q[8], -127);
  ExpectSame(out[1], Quantised(x.data(), 64, 0, 2)[1], "not below");
}

// It shows in every product with the block, and in no other.
TEST_F(QuantizerTest, ABlockWithAValueThatIsNotFiniteHasSuchAScale) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x = NormalValues(160);
    const std::vector<QuantBlock> finite = Quantised(x.data(), 160, 0, 5);
    x[70] = value;
    std::vector<QuantBlock> out(5);
    Quantizer().AddRow(x.data(), 160, 0, 5, out.data());
    EXPECT_FALSE(std::isfinite(out[2].d)) << value;
    EXPECT_FALSE(std::isfinite(out[2].d_sum)) << value;
    EXPECT_THAT(out[2].q, testing::Each(testing::Ge(-127))) << value;
    for (const uint32_t b : {0u, 1u, 3u, 4u}) {
      ExpectSame(out[b], finite[b], "block " + std::to_string(b));
    }
  }
}

}  // namespace
}  // namespace tandem::kernels::cpu
