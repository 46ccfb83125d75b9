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

// Each attempt takes as long as the window, or longer.
TEST(SupervisorTest, AttemptsThatOutlastTheWindowCountAllTheSame) {
  SimulatedClock clock;
  SupervisorOptions options;
  options.cluster.external = true;
  options.load_timeout = std::chrono::minutes(20);
  options.restart_window = std::chrono::minutes(10);
  options.max_restarts = 2;
  options.clock = &clock;
  auto supervisor = Supervisor::Start(std::move(options));
  ASSERT_TRUE(supervisor.ok()) << supervisor.status();
  const TimePoint begin = clock.Now();
  const auto recovered = (*supervisor)->Recover(absl::UnavailableError("rank 0 is gone"), nullptr);
  EXPECT_EQ(recovered.status().message(),
            "workers that did not connect in time: rank 0; not restarted again: 2 restarts within "
            "10m are the most");
  EXPECT_EQ(clock.Now() - begin, std::chrono::minutes(40));
}

}  // namespace
}  // namespace tandem::coordinator
