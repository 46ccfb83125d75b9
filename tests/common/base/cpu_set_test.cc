#include "common/base/cpu_set.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tandem {
namespace {

TEST(CpuSetTest, SetsHaveOneText) {
  for (const auto& [text, cpus] : std::vector<std::pair<std::string, CpuSet>>{
           {"3", {3}}, {"0-2", {0, 1, 2}}, {"0-1,4,6-7", {0, 1, 4, 6, 7}}, {"4095", {4095}}}) {
    const auto parsed = ParseCpuSet(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(*parsed, cpus);
    EXPECT_EQ(CpuSetText(cpus), text);
  }
  EXPECT_EQ(*ParseCpuSet("4,0-2,1"), (CpuSet{0, 1, 2, 4}));
  EXPECT_EQ(CpuSetText(CpuSet()), "");
}

TEST(CpuSetTest, OtherTextsAreNone) {
  for (const char* text : {"", ",", "a", "1,", "-1", "1-", "3-1", "0-", "1-2-3", "0x2", "4096",
                           "0-4096", "99999999999", "0\n", " 1", "+1"}) {
    EXPECT_FALSE(ParseCpuSet(text).has_value()) << text;
  }
}

// A thread that waits until it is asked.
class Asked {
 public:
  std::thread& thread() { return thread_; }
  CpuSet Usable() {
    go_.set_value();
    thread_.join();
    return usable_;
  }

 private:
  std::promise<void> go_;
  CpuSet usable_;
  std::thread thread_{[this, go = go_.get_future()]() mutable {
    go.wait();
    usable_ = UsableCpus();
  }};
};

TEST(RestrictTest, AProcessWithItsThreadsOrAThreadAlone) {
  const CpuSet all = UsableCpus();
  ASSERT_FALSE(all.empty());
  const CpuSet one = {all.back()};
  Asked before_thread;
  ASSERT_TRUE(RestrictThread(one).ok());
  EXPECT_EQ(UsableCpus(), one);
  EXPECT_EQ(before_thread.Usable(), all);

  ASSERT_TRUE(RestrictProcess(all).ok());
  EXPECT_EQ(UsableCpus(), all);
  Asked before_process;
  ASSERT_TRUE(RestrictProcess(one).ok());
  EXPECT_EQ(before_process.Usable(), one);
  EXPECT_EQ(Asked().Usable(), one);
  ASSERT_TRUE(RestrictProcess(all).ok());
  EXPECT_EQ(Asked().Usable(), all);
}

TEST(RestrictTest, AnotherThread) {
  const CpuSet all = UsableCpus();
  ASSERT_FALSE(all.empty());
  const CpuSet one = {all.back()};
  Asked asked;
  ASSERT_TRUE(RestrictThread(asked.thread(), one).ok());
  EXPECT_EQ(asked.Usable(), one);
  EXPECT_EQ(UsableCpus(), all);
}

TEST(RestrictTest, CpusThatThereAreNot) {
  Asked asked;
  for (const absl::Status& status :
       {RestrictThread({4095}), RestrictThread(asked.thread(), {4095})}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(status.message(), "cannot run on CPUs 4095: Invalid argument");
  }
  asked.Usable();
}

}  // namespace
}  // namespace tandem
