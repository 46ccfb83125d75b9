#include "common/base/ids.h"

#include <gtest/gtest.h>

#include <sstream>
#include <type_traits>
#include <unordered_set>

namespace tandem {
namespace {

static_assert(!std::is_convertible_v<Epoch, StepId>);

TEST(StrongIdTest, ComparesPrintsAndHashes) {
  const Epoch first{1};
  const Epoch second{2};
  EXPECT_LT(first, second);
  EXPECT_NE(first, second);
  std::ostringstream text;
  text << second;
  EXPECT_EQ(text.str(), "2");
  const std::unordered_set<Epoch> set = {first, second, Epoch{1}};
  EXPECT_EQ(set.size(), 2u);
}

}  // namespace
}  // namespace tandem
