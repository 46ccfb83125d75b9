// The cluster's decisions over simulated processes; tests/cluster has real ones.
#include "coordinator/cluster/cluster.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <utility>
#include <vector>

#include "common/step/protocol_version.h"

namespace tandem::coordinator {
namespace {

// A process that runs until it is killed, and whose worker never connects.
class IdleProcess : public ChildProcess {
 public:
  pid_t pid() const override { return 1; }
  absl::Status Poll() override { return ended_; }
  bool WaitExit(Duration) override { return !ended_.ok(); }
  void Kill(int) override { ended_ = absl::UnavailableError("killed"); }

 private:
  absl::Status ended_;
};

class ClusterTest : public testing::Test {
 protected:
  void SetUp() override {
    auto cluster = Cluster::Over(
        registry_,
        [this](size_t) {
          processes_.push_back(std::make_shared<IdleProcess>());
          return processes_.back();
        },
        clock_);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }
  SimulatedClock clock_;
  WorkerRegistry registry_{1, /*one_host=*/true};
  std::vector<std::shared_ptr<IdleProcess>> processes_;
  std::unique_ptr<Cluster> cluster_;
};

// Ours was refused and has ended: the one that has its rank gives it up, and another of ours
// follows.
TEST_F(ClusterTest, ARankThatAnotherWorkerHasTakenIsGivenUp) {
  v1::Hello hello;
  hello.set_protocol_version(step::kWorkerProtocolVersion);
  hello.set_rank(0);
  const auto taker = std::make_shared<WorkerLink>(hello, [this](v1::CoordinatorMessage message) {
    if (message.has_shutdown()) registry_.Release(registry_.links()[0]);
    return absl::OkStatus();
  });
  ASSERT_TRUE(registry_.Admit(taker).ok());
  processes_[0]->Kill(SIGKILL);
  const absl::Status replaced = cluster_->Replace();
  EXPECT_TRUE(replaced.ok()) << replaced;
  EXPECT_EQ(processes_.size(), 2u);
  EXPECT_EQ(registry_.Missing(), std::vector<int>{0});
}

}  // namespace
}  // namespace tandem::coordinator
