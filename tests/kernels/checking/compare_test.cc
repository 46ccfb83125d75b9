#include "tests/kernels/checking/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/tensor/blocks_of_32.h"

namespace tandem::kernels::checking {
namespace {

template <typename T>
std::vector<std::byte> Bytes(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

bool Agrees(const Output& output, const std::vector<float>& a, const std::vector<float>& b) {
  return Compare(output, Bytes(a), Bytes(b)).ok();
}

TEST(CompareTest, AllowsDifferencesInUnitsOfTheRootMeanSquare) {
  const Output output{nullptr, Element::kF32, 1, 4, 4, 0.1f};
  EXPECT_TRUE(Agrees(output, {10, -10, 10.9f, 10}, {10, -10, 10, 10}));
  EXPECT_FALSE(Agrees(output, {10, -10, 11.1f, 10}, {10, -10, 10, 10}));
}

TEST(CompareTest, ZeroToleranceMeansEqual) {
  const Output output{nullptr, Element::kF32, 1, 1, 1, 0};
  EXPECT_TRUE(Agrees(output, {1}, {1}));
  EXPECT_FALSE(Agrees(output, {1}, {std::nextafter(1.0f, 2.0f)}));
}

TEST(CompareTest, SpecialValues) {
  const Output output{nullptr, Element::kF32, 1, 1, 1, 0.5f};
  const float nan = std::nanf(""), inf = INFINITY;
  EXPECT_TRUE(Agrees(output, {nan}, {nan}));
  EXPECT_TRUE(Agrees(output, {inf}, {inf}));
  EXPECT_FALSE(Agrees(output, {nan}, {1}));
  EXPECT_FALSE(Agrees(output, {1}, {nan}));
  EXPECT_FALSE(Agrees(output, {inf}, {-inf}));
  EXPECT_FALSE(Agrees(output, {inf}, {1}));
}

TEST(CompareTest, SkipsWhatLiesBetweenRowsAndNamesThePlace) {
  const Output output{nullptr, Element::kF32, 2, 2, 3, 0.01f};
  EXPECT_EQ(output.bytes(), 5 * sizeof(float));
  EXPECT_TRUE(Agrees(output, {1, 2, 99, 3, 4}, {1, 2, -5, 3, 4}));
  const absl::Status status =
      Compare(output, Bytes<float>({1, 2, 0, 3, 5}), Bytes<float>({1, 2, 0, 3, 4}));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("row 1 column 1 is 5, should be 4"), std::string::npos) << status;
}

TEST(CompareTest, HalvesAndIntegers) {
  const Output half{nullptr, Element::kF16, 1, 1, 1, 0.002f};
  EXPECT_TRUE(Compare(half, Bytes<uint16_t>({0x3c00}), Bytes<uint16_t>({0x3c01})).ok());
  EXPECT_FALSE(Compare(half, Bytes<uint16_t>({0x3c00}), Bytes<uint16_t>({0x3c04})).ok());
  const Output ints{nullptr, Element::kI32, 1, 1, 1, 0};
  EXPECT_TRUE(Compare(ints, Bytes<int32_t>({151935}), Bytes<int32_t>({151935})).ok());
  EXPECT_FALSE(Compare(ints, Bytes<int32_t>({151935}), Bytes<int32_t>({151934})).ok());
}

TEST(CompareTest, RoundedValuesMayDifferByOneStepOfTheirType) {
  const Output half{nullptr, Element::kF16, 1, 2, 2, 1e-4f},
      bf16{nullptr, Element::kBF16, 1, 2, 2, 1e-4f};
  for (const Output& output : {half, bf16}) {
    // A large value beside a small one: the step is each value's own.
    EXPECT_TRUE(
        Compare(output, Bytes<uint16_t>({0x4c01, 0x3c01}), Bytes<uint16_t>({0x4c00, 0x3c00})).ok());
    EXPECT_FALSE(
        Compare(output, Bytes<uint16_t>({0x4c03, 0x3c01}), Bytes<uint16_t>({0x4c00, 0x3c00})).ok());
  }
  Output exact = bf16;
  exact.tolerance = 0;
  EXPECT_FALSE(
      Compare(exact, Bytes<uint16_t>({0x4c01, 0x3c00}), Bytes<uint16_t>({0x4c00, 0x3c00})).ok());
}

TEST(CompareTest, BlocksOfQ8_0) {
  const Output output{nullptr, Element::kQ8_0, 2, 64, 64, 1e-4f};
  EXPECT_EQ(output.bytes(), 4 * sizeof(tensor::BlockQ8_0));
  std::vector<tensor::BlockQ8_0> judge(4);
  for (auto& block : judge) block = {0x3c00, {100, 50}};  // a step of 1
  auto subject = judge;
  subject[3].qs[1] = 51;
  subject[2].d = 0x3c01;  // a step of the scale
  EXPECT_TRUE(Compare(output, Bytes(subject), Bytes(judge)).ok());
  subject[3].qs[1] = 52;
  const absl::Status status = Compare(output, Bytes(subject), Bytes(judge));
  EXPECT_NE(status.message().find("row 1 column 33 is 52, should be 50"), std::string::npos)
      << status;
}

}  // namespace
}  // namespace tandem::kernels::checking
