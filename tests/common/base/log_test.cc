#include "common/base/log.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace tandem {
namespace {

class LogTest : public testing::Test {
 protected:
  void TearDown() override {
    SetLogLevel(LogLevel::kInfo);
    SetLogFormat(LogFormat::kText);
  }
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

TEST_F(LogTest, NamesTheRequestAndItsTrace) {
  testing::internal::CaptureStderr();
  TANDEM_LOG_REQUEST(kInfo, (LogRequest{.id = "a", .trace_id = "4bf9"})) << "gone";
  TANDEM_LOG_REQUEST(kInfo, (LogRequest{.id = "b"})) << "gone";
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("Z request \"a\", trace 4bf9: gone\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Z request \"b\": gone\n"), std::string::npos) << text;
}

TEST_F(LogTest, WritesJson) {
  SetLogFormat(LogFormat::kJson);
  testing::internal::CaptureStderr();
  TANDEM_LOG(kWarning) << "loaded";
  TANDEM_LOG_REQUEST(kError, (LogRequest{.id = "a\"\n", .trace_id = "4bf9"}))
      << "back\\slash \xc3\xa4 and a broken byte \xff";
  const std::string text = testing::internal::GetCapturedStderr();
  const std::string time = R"(^\{"time": "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", )";
  const size_t second = text.find('\n') + 1;
  EXPECT_TRUE(std::regex_match(text.substr(0, second - 1),
                               std::regex(time + R"("level": "warning", "message": "loaded"\}$)")))
      << text;
  EXPECT_NE(text.find(R"("level": "error", "request_id": "a\"\u000a", "trace_id": "4bf9", )"
                      R"("message": "back\\slash )"
                      "\xc3\xa4 and a broken byte \xef\xbf\xbd\"}\n",
                      second),
            std::string::npos)
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
