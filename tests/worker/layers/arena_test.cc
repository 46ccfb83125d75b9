#include "worker/layers/arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace tandem::worker {
namespace {

TEST(ArenaTest, CountingFindsThePeakOfARealArena) {
  Arena counting(tensor::Type::kF32);
  counting.Take<float>(3);
  const size_t mark = counting.used();
  counting.Take<float>(100);
  counting.Rewind(mark);
  counting.Take<int32_t>(5);
  EXPECT_EQ(counting.peak(), 64u + 448u);  // 3 floats and 100 floats, each up to 64 bytes
  EXPECT_EQ(counting.used(), 128u);

  alignas(64) std::byte memory[512];
  Arena arena(tensor::Type::kF32, memory, counting.peak());
  EXPECT_EQ(static_cast<void*>(arena.Take<float>(3)), memory);
  EXPECT_EQ(static_cast<void*>(arena.Take<float>(100)), memory + 64);
  arena.Rewind(64);
  EXPECT_EQ(static_cast<void*>(arena.Take<int32_t>(5)), memory + 64);
}

TEST(ArenaTest, ActivationsTakeTheRoomOfTheirType) {
  for (const auto& [type, bytes] : {std::pair{tensor::Type::kF32, 4u}, {tensor::Type::kBF16, 2u}}) {
    Arena counting(type);
    counting.TakeActivations(320);
    EXPECT_EQ(counting.peak(), 320 * bytes);
  }
}

TEST(ArenaDeathTest, TakingMoreThanWasPlannedIsOurBug) {
  alignas(64) std::byte memory[64];
  Arena arena(tensor::Type::kF32, memory, sizeof(memory));
  EXPECT_DEATH(arena.Take<float>(17), "arena of 64 bytes");
}

}  // namespace
}  // namespace tandem::worker
