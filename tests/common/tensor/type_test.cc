#include "common/tensor/type.h"

#include <gtest/gtest.h>

namespace tandem::tensor {
namespace {

TEST(TypeTest, UnknownNumbersAreNotFound) {
  for (uint32_t number : {4u, 5u, 9u, 15u, 31u, 255u, 4294967295u}) {
    EXPECT_FALSE(FindTypeTraits(number).has_value()) << number;
  }
}

TEST(TypeTest, FoundByNumber) {
  ASSERT_TRUE(FindTypeTraits(12).has_value());
  EXPECT_EQ(FindTypeTraits(12)->name, "Q4_K");
  EXPECT_EQ(FindTypeTraits(12)->type, Type::kQ4_K);
  EXPECT_EQ(Name(Type::kBF16), "BF16");
}

TEST(TypeTest, RowBytesCountsBlocks) {
  EXPECT_EQ(RowBytes(Type::kF32, 7), 28u);
  EXPECT_EQ(RowBytes(Type::kQ8_0, 64), 68u);
  EXPECT_EQ(RowBytes(Type::kQ4_K, 512), 288u);
  EXPECT_EQ(RowBytes(Type::kQ6_K, 0), 0u);
}

TEST(TypeDeathTest, RowBytesRefusesPartOfABlock) {
  EXPECT_DEATH(RowBytes(Type::kQ4_K, 128), "Q4_K, 128 values");
}

TEST(TypeDeathTest, TraitsOfANumberThatIsNoTypeIsABug) {
  EXPECT_DEATH(Traits(static_cast<Type>(99)), "type number 99");
}

}  // namespace
}  // namespace tandem::tensor
