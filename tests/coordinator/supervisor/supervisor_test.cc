// What needs no workers; tests/cluster/supervisor_test.cc has real ones.
#include "coordinator/supervisor/supervisor.h"

#include <gtest/gtest.h>

#include <utility>

namespace tandem::coordinator {
namespace {

TEST(SupervisorTest, NamesTheRanksThatDoNotConnectInTime) {
  SimulatedClock clock;
  const TimePoint begin = clock.Now();
  SupervisorOptions options;
  options.cluster.size = 2;
  options.cluster.external = true;
  options.load_timeout = std::chrono::hours(1);
  options.clock = &clock;
  auto supervisor = Supervisor::Start(std::move(options));
  ASSERT_TRUE(supervisor.ok()) << supervisor.status();
  EXPECT_EQ((*supervisor)->Bring(nullptr).status(),
            absl::DeadlineExceededError("workers that did not connect in time: rank 0, 1"));
  EXPECT_EQ(clock.Now() - begin, std::chrono::hours(1));
}

}  // namespace
}  // namespace tandem::coordinator
