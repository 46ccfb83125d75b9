#include "common/hub/progress.h"

#include <gtest/gtest.h>

namespace tandem::hub {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(ProgressTest, Text) {
  using std::chrono::seconds;
  EXPECT_EQ(ProgressText("m.gguf", 0, 0, 100 * kMiB, seconds(0)), "m.gguf: 0 B of 100 MiB (0%)");
  EXPECT_EQ(ProgressText("m.gguf", 0, 25 * kMiB, 100 * kMiB, seconds(5)),
            "m.gguf: 25 MiB of 100 MiB (25%), 5 MiB/s, 0:15 left");
  // What was there before does not count for the rate.
  EXPECT_EQ(ProgressText("m.gguf", 50 * kMiB, 60 * kMiB, 100 * kMiB, seconds(100)),
            "m.gguf: 60 MiB of 100 MiB (60%), 102 KiB/s, 6:40 left");
  EXPECT_EQ(ProgressText("m.gguf", 0, kMiB, 7201 * kMiB, seconds(1)),
            "m.gguf: 1 MiB of 7.03 GiB (0%), 1 MiB/s, 2:00:00 left");
  EXPECT_EQ(ProgressText("m.gguf", 0, 10 * kMiB, 10 * kMiB, seconds(10)),
            "m.gguf: 10 MiB of 10 MiB (100%), 1 MiB/s");
}

}  // namespace
}  // namespace tandem::hub
