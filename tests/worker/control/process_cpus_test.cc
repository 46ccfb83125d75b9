#include "worker/control/process_cpus.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem::worker {
namespace {

TEST(ProcessCpusTest, OneSetAfterAnotherAndAllAgain) {
  const CpuSet all = UsableCpus();
  ASSERT_FALSE(all.empty());
  ProcessCpus cpus;
  ASSERT_TRUE(cpus.Use({}).ok());
  EXPECT_EQ(UsableCpus(), all);
  for (const CpuSet& set : {CpuSet{all.front()}, CpuSet{all.back()}, all}) {
    ASSERT_TRUE(cpus.Use(set).ok());
    EXPECT_EQ(UsableCpus(), set);
  }
  ASSERT_TRUE(cpus.Use({all.front()}).ok());
  ASSERT_TRUE(cpus.Use({}).ok());
  EXPECT_EQ(UsableCpus(), all);
}

TEST(ProcessCpusTest, OthersAreRefusedAndChangeNothing) {
  const CpuSet all = UsableCpus();
  ProcessCpus cpus;
  const absl::Status refused = cpus.Use({all.front(), 4095});
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  const std::string first = CpuSetText({all.front()});
  EXPECT_EQ(refused.message(), "--worker-cpus " + first +
                                   ",4095: the worker has no CPU 4095, its "
                                   "CPUs are " +
                                   CpuSetText(all));
  EXPECT_EQ(UsableCpus(), all);
}

}  // namespace
}  // namespace tandem::worker
