#include "common/base/check.h"

#include <gtest/gtest.h>

#include "absl/status/status.h"

namespace tandem {
namespace {

TEST(CheckDeathTest, NamesFileExpressionAndMessage) {
  EXPECT_DEATH(TANDEM_CHECK(1 + 1 == 3) << "block " << 7,
               "check_test.cc:[0-9]+: check failed: 1 \\+ 1 == 3 block 7");
}

TEST(CheckDeathTest, CheckOkPrintsTheStatus) {
  EXPECT_DEATH(TANDEM_CHECK_OK(absl::NotFoundError("gone")), "NOT_FOUND: gone");
}

TEST(CheckTest, ATrueConditionEvaluatesNoMessage) {
  int evaluated = 0;
  TANDEM_CHECK(true) << ++evaluated;
  TANDEM_CHECK_OK(absl::OkStatus()) << ++evaluated;
  EXPECT_EQ(evaluated, 0);
}

TEST(CheckTest, IsOneStatementInAnIf) {
  bool otherwise = false;
  if (false)
    TANDEM_CHECK(false);
  else
    otherwise = true;
  EXPECT_TRUE(otherwise);
}

}  // namespace
}  // namespace tandem
