#include "common/base/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

// Tests are never stamped, so a new commit does not run them again.
TEST(VersionTest, NumberAndCommit) {
  EXPECT_THAT(BuildVersion(), testing::MatchesRegex("[0-9]+[.][0-9]+[.][0-9]+ .unknown commit."));
}

}  // namespace
}  // namespace tandem
