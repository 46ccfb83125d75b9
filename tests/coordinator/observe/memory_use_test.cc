#include "coordinator/observe/memory_use.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace tandem::coordinator {
namespace {

// Sizes below and above the one from which the allocator asks the kernel for each by itself.
class MemoryUseTest : public ::testing::TestWithParam<size_t> {};

TEST_P(MemoryUseTest, WhatIsAllocatedIsCountedUntilItIsFreed) {
  constexpr int64_t kTotal = int64_t{64} << 20;
  const MemoryUse before = MeasureMemory();
  if (before.allocated_bytes == 0) GTEST_SKIP() << "a sanitizer's allocator does not tell";
  std::vector<std::vector<char>> blocks(kTotal / GetParam());
  for (auto& block : blocks) block.assign(GetParam(), 'x');
  const MemoryUse during = MeasureMemory();
  blocks.clear();
  const MemoryUse after = MeasureMemory();
  EXPECT_GE(during.allocated_bytes, before.allocated_bytes + kTotal);
  EXPECT_LE(after.allocated_bytes, before.allocated_bytes + kTotal / 16);
  EXPECT_GE(during.resident_bytes, kTotal);
}

INSTANTIATE_TEST_SUITE_P(Sizes, MemoryUseTest, ::testing::Values(4 << 10, 4 << 20));

}  // namespace
}  // namespace tandem::coordinator
