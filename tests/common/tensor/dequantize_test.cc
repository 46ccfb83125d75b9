// Dequantised values are bit-equal to the golden ones; the golden folder also has the block sizes
// of all types.
#include "common/tensor/dequantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tandem::tensor {
namespace {

const std::string kFolder = "tests/golden/quant/";

std::vector<char> ReadFile(const std::string& name) {
  std::ifstream in(kFolder + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct GoldenType {
  std::string name;
  uint32_t number;
  size_t row_bytes;
};

void PrintTo(const GoldenType& type, std::ostream* out) { *out << type.name; }

constexpr size_t kRows = 8;
constexpr size_t kCols = 512;

std::vector<GoldenType> AllTypes() {
  const auto index = nlohmann::json::parse(ReadFile("index.json"));
  std::vector<GoldenType> all;
  for (const auto& entry : index["types"]) {
    all.push_back({entry["type"], entry["ggml_type"], entry["row_bytes"]});
  }
  return all;
}

class GoldenTypeTest : public testing::TestWithParam<GoldenType> {};

TEST_P(GoldenTypeTest, TableHasNameAndRowBytes) {
  const auto traits = FindTypeTraits(GetParam().number);
  ASSERT_TRUE(traits.has_value());
  EXPECT_EQ(traits->name, GetParam().name);
  EXPECT_EQ(RowBytes(traits->type, kCols), GetParam().row_bytes);
}

TEST_P(GoldenTypeTest, ValuesAreBitEqual) {
  const TypeTraits traits = *FindTypeTraits(GetParam().number);
  ASSERT_TRUE(traits.supported);
  const std::vector<char> blocks = ReadFile(GetParam().name + ".bin");
  const std::vector<char> golden = ReadFile(GetParam().name + ".f32");
  ASSERT_EQ(blocks.size(), kRows * GetParam().row_bytes);
  ASSERT_EQ(golden.size(), kRows * kCols * sizeof(float));
  std::vector<float> out(kRows * kCols);
  Dequantize(traits.type, reinterpret_cast<const std::byte*>(blocks.data()), out.data(),
             out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    ASSERT_EQ(std::memcmp(&out[i], golden.data() + i * sizeof(float), sizeof(float)), 0)
        << "row " << i / kCols << " column " << i % kCols << ": " << out[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenTypeTest, testing::ValuesIn(AllTypes()),
                         [](const auto& param) { return param.param.name; });

TEST(DequantizeTest, F32IsCopied) {
  const std::vector<float> in = {1.5f, -0.0f, 3e-40f};
  std::vector<float> out(3);
  Dequantize(Type::kF32, reinterpret_cast<const std::byte*>(in.data()), out.data(), 3);
  EXPECT_EQ(std::memcmp(in.data(), out.data(), 12), 0);
}

// Scales of MXFP4 that are no normal floats, which the golden blocks don't have.
TEST(DequantizeTest, Mxfp4ScalesArePowersOfTwoFromEndToEnd) {
  for (int e = 0; e < 256; ++e) {
    std::byte block[17] = {std::byte(e), std::byte{0xf1}};
    float out[32];
    Dequantize(Type::kMXFP4, block, out, 32);
    EXPECT_EQ(out[0], std::ldexp(1.0f, e - 128));
    EXPECT_EQ(out[16], -12 * std::ldexp(1.0f, e - 128));  // infinite for the largest
    EXPECT_EQ(out[1], 0.0f);
  }
}

// Every scale of NVFP4, and where a block has which value: group g's scale is byte g, and bytes 8 g
// to 8 g + 7 behind the scales have its first eight values below its last eight.
TEST(DequantizeTest, Nvfp4ScalesAndOrderOfValues) {
  constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6};
  for (int byte = 0; byte < 256; ++byte) {
    const int exponent = byte >> 3 & 15, mantissa = byte & 7;
    double scale =
        exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(1 + mantissa / 8.0, exponent - 7);
    if (exponent == 15 && mantissa == 7) scale = 0;  // NaN
    for (int group = 0; group < 4; ++group) {
      std::byte block[36] = {std::byte{0x38}, std::byte{0x38}, std::byte{0x38}, std::byte{0x38}};
      block[group] = static_cast<std::byte>(byte);
      // Value i of a group has code i.
      for (int i = 0; i < 32; ++i) block[4 + i] = static_cast<std::byte>(i % 8 | (i % 8 + 8) << 4);
      float out[64];
      Dequantize(Type::kNVFP4, block, out, 64);
      for (int i = 0; i < 64; ++i) {
        const double of_group = i / 16 == group ? scale : 1;
        EXPECT_EQ(out[i], of_group * kValues[i % 16]) << byte << " of group " << group << ", " << i;
      }
    }
  }
}

TEST(DequantizeDeathTest, TypesOfTheTableAloneAreABug) {
  const TypeTraits& traits = Traits(Type::kF64);
  EXPECT_FALSE(traits.supported);
  std::vector<std::byte> block(traits.block_bytes);
  std::vector<float> out(traits.block_values);
  EXPECT_DEATH(Dequantize(traits.type, block.data(), out.data(), out.size()),
               "cannot be computed with");
}

TEST(DequantizeDeathTest, PartOfABlockIsABug) {
  float out[32];
  std::byte block[34] = {};
  EXPECT_DEATH(Dequantize(Type::kQ8_0, block, out, 31), "31 values");
}

}  // namespace
}  // namespace tandem::tensor
