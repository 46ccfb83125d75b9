#include "common/base/log.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem {
namespace {

class LogTest : public testing::Test {
 protected:
  void TearDown() override { SetLogLevel(LogLevel::kInfo); }
};

TEST_F(LogTest, WritesOneLineToStderr) {
  testing::internal::CaptureStderr();
  TANDEM_LOG(kInfo) << "loaded " << 3 << " tensors";
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("loaded 3 tensors\n"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), text.size() - 1);
}

TEST_F(LogTest, DropsLinesBelowTheLevelWithoutEvaluatingThem) {
  SetLogLevel(LogLevel::kWarning);
  int evaluated = 0;
  testing::internal::CaptureStderr();
  TANDEM_LOG(kInfo) << ++evaluated;
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(evaluated, 0);
}

}  // namespace
}  // namespace tandem
