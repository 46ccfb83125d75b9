// What needs no workers; tests/cluster/supervisor_test.cc has real ones.
#include "coordinator/supervisor/supervisor.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

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
  EXPECT_EQ(clock.Now() - begin, std::chrono::minutes(40) + std::chrono::milliseconds(500));
}

// A process that has ended as soon as it is looked at.
class EndedProcess : public ChildProcess {
 public:
  pid_t pid() const override { return 1; }
  absl::Status Poll() override { return absl::UnavailableError("exited with code 1"); }
  bool WaitExit(Duration) override { return true; }
  void Kill(int) override {}
};

class EndedWorkersTest : public testing::Test {
 protected:
  std::unique_ptr<Supervisor> Start(int max_restarts) {
    auto cluster = Cluster::Over(
        registry_,
        [this](size_t) -> absl::StatusOr<std::shared_ptr<ChildProcess>> {
          launched_.push_back(clock_.Now());
          return std::make_shared<EndedProcess>();
        },
        clock_);
    SupervisorOptions options;
    options.load_timeout = std::chrono::minutes(10);
    options.restart_window = std::chrono::minutes(10);
    options.max_restarts = max_restarts;
    options.clock = &clock_;
    return std::make_unique<Supervisor>(std::move(options), *std::move(cluster));
  }

  SimulatedClock clock_;
  WorkerRegistry registry_{/*size=*/1, /*one_host=*/true};
  std::vector<TimePoint> launched_;
};

TEST_F(EndedWorkersTest, TheFirstStartIsNotTriedAgain) {
  EXPECT_EQ(Start(5)->Bring(nullptr).status(),
            absl::UnavailableError("rank 0 before it connected: exited with code 1"));
  EXPECT_EQ(launched_.size(), 1u);
}

// A program that is being replaced is missing for a moment.
TEST_F(EndedWorkersTest, PausesGrowBetweenRestarts) {
  const auto supervisor = Start(9);
  EXPECT_FALSE(supervisor->Bring(nullptr).ok());
  EXPECT_FALSE(supervisor->Recover(absl::UnavailableError("rank 0 is gone"), nullptr).ok());
  using std::chrono::milliseconds;
  constexpr milliseconds kLook(50);  // for workers to connect, before each start but the first
  std::vector<Duration> pauses;      // between restarts, whose workers are started twice
  for (size_t i = 3; i < launched_.size(); i += 2) {
    pauses.push_back(launched_[i] - launched_[i - 1] - kLook);
  }
  EXPECT_EQ(pauses,
            std::vector<Duration>({milliseconds(500), milliseconds(1000), milliseconds(2000),
                                   milliseconds(4000), milliseconds(8000), milliseconds(16000),
                                   milliseconds(30000), milliseconds(30000)}));
}

TEST_F(EndedWorkersTest, APauseEndsWithTheServer) {
  const auto supervisor = Start(5);
  EXPECT_FALSE(supervisor->Bring(nullptr).ok());
  const TimePoint begin = clock_.Now();
  const auto recovered =
      supervisor->Recover(absl::UnavailableError("rank 0 is gone"), [] { return true; });
  EXPECT_TRUE(absl::IsCancelled(recovered.status())) << recovered.status();
  EXPECT_LT(clock_.Now() - begin, std::chrono::milliseconds(500));
}

}  // namespace
}  // namespace tandem::coordinator
