#include "coordinator/api/byte_budget.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

namespace tandem::coordinator {
namespace {

TEST(ByteBudgetTest, WhatIsTakenComesBackWithItsHold) {
  ByteBudget budget(100);
  std::optional<ByteBudget::Hold> first = budget.Take(60).value();
  const auto refused = budget.Take(41);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_EQ(refused.status().message(),
            "a request of 41 bytes does not fit: requests of 60 bytes are being answered, of at "
            "most 100; try again later");
  EXPECT_TRUE(budget.Take(40).ok()) << "and it is given back at once";
  ByteBudget::Hold moved = std::move(*first);
  first.reset();
  EXPECT_FALSE(budget.Take(41).ok()) << "the bytes moved";
  moved = {};
  EXPECT_TRUE(budget.Take(100).ok());
}

TEST(ByteBudgetTest, NoSumOverflows) {
  ByteBudget budget(100);
  const auto held = budget.Take(1);
  EXPECT_FALSE(budget.Take(SIZE_MAX).ok());
}

}  // namespace
}  // namespace tandem::coordinator
