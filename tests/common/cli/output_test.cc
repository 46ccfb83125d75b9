#include "common/cli/output.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace tandem::cli {
namespace {

TEST(OutputTest, AFullDeviceIsAnErrorWithItsReason) {
  std::ofstream full("/dev/full");
  ASSERT_TRUE(Write(full, "a few bytes").ok());  // into the buffer
  EXPECT_EQ(Flush(full), absl::DataLossError("stdout: No space left on device"));
  EXPECT_EQ(Write(full, std::string(1 << 20, 'x')).code(), absl::StatusCode::kDataLoss);
}

TEST(OutputTest, WhatIsWrittenIsOk) {
  std::ofstream null("/dev/null");
  EXPECT_TRUE(Write(null, "text").ok());
  EXPECT_TRUE(Flush(null).ok());
}

}  // namespace
}  // namespace tandem::cli
