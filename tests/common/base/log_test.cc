#include "common/base/log.h"

#include <gtest/gtest.h>

#include <regex>
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
  // Level, date and time: I 2026-01-31 23:59:59.123Z
  EXPECT_TRUE(
      std::regex_search(text, std::regex(R"(^I \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z loaded)")))
      << text;
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
