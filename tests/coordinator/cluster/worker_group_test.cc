#include "coordinator/cluster/worker_group.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/coordinator/cluster/simulated_worker.h"

namespace tandem::coordinator {
namespace {

// A minute that passes only while somebody waits, and takes no time then.
Deadline Later() {
  static SimulatedClock clock;
  return Deadline::After(std::chrono::minutes(1), clock);
}

const config::WorkerConfig kConfig = {.model = {.spec = {.max_model_len = 64}},
                                      .cache = {.block_size = 4},
                                      .limits = {.max_num_seqs = 4, .max_num_batched_tokens = 16}};

std::vector<config::WorkerAssignment> Ranks(int size, Epoch epoch = Epoch{3}) {
  std::vector<config::WorkerAssignment> ranks(size);
  for (int rank = 0; rank < size; ++rank) {
    ranks[rank] = {.epoch = epoch, .rank = rank, .size = size};
  }
  return ranks;
}

// One sequence that prefills tokens 1 2 3 into block 1.
step::StepDescriptor Prefill(uint64_t step_id, Epoch epoch = Epoch{3}) {
  step::StepDescriptor step;
  step.step_id = StepId{step_id};
  step.epoch = epoch;
  step.kind = step::StepKind::kPrefill;
  step.num_scheduled_tokens = 3;
  step.num_seqs_active = 1;
  step.tokens = {1, 2, 3};
  step.positions = {0, 1, 2};
  step.query_offsets = {0, 3};
  step.sequences = {{.slot = 0, .query_len = 3, .context_len = 3}};
  step.groups = {{.tables = {{.length_after = 1}}, .blocks = {1}, .slot_mapping = {4, 5, 6}}};
  step.rows = {{.token = 2}};
  step.sampling = {{.temperature = 0, .position = 3}};
  return step;
}

// A group of simulated workers, up and running.
WorkerGroup Running(const std::vector<SimulatedScript>& scripts) {
  const int size = static_cast<int>(scripts.size());
  WorkerGroup group(MakeSimulatedWorkers(size, SimulatedModel{}, {8}, scripts));
  EXPECT_TRUE(group.Bring(kConfig, Ranks(size), Later()).ok());
  return group;
}

SimulatedScript FaultAt(uint64_t step, SimulatedFault fault) {
  return {.faults = {{step, fault}}, .delay_polls = 3, .fail_load = false};
}

// Submits one step to ranks of which `scripts` fail; returns Collect's result.
absl::Status CollectStatus(const std::vector<SimulatedScript>& scripts, Deadline deadline) {
  WorkerGroup group = Running(scripts);
  if (absl::Status status = group.Submit(Prefill(1), Later()); !status.ok()) return status;
  return group.Collect(deadline).status();
}

void ExpectLost(const absl::Status& status, const std::string& message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), message);
}

TEST(WorkerGroupTest, BringAgreesOnTheFewestBlocks) {
  std::vector<std::unique_ptr<WorkerClient>> workers;
  workers.push_back(
      std::make_unique<SimulatedWorker>(0, SimulatedModel{}, std::vector<uint32_t>{9, 5}));
  workers.push_back(
      std::make_unique<SimulatedWorker>(1, SimulatedModel{}, std::vector<uint32_t>{7, 6}));
  WorkerGroup group(std::move(workers));
  const auto blocks = group.Bring(kConfig, Ranks(2), Later());
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  EXPECT_EQ(*blocks, (std::vector<uint32_t>{7, 5}));
}

TEST(WorkerGroupTest, BringReportsTheRankThatCannotLoad) {
  SimulatedScript broken;
  broken.fail_load = true;
  WorkerGroup group(MakeSimulatedWorkers(2, SimulatedModel{}, {8}, {{}, broken}));
  const auto blocks = group.Bring(kConfig, Ranks(2), Later());
  EXPECT_EQ(blocks.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(blocks.status().message(), "rank 1: no model");
}

// The rank that hangs is to be named, not the one that waits for it.
TEST(WorkerGroupTest, BringNamesTheRankThatShowsNoSignOfLife) {
  SimulatedScript waiting, hanging;
  waiting.waits_in_vain = true;
  hanging.loads_for_ever = true;
  hanging.answers_pings = false;
  WorkerGroup group(MakeSimulatedWorkers(2, SimulatedModel{}, {8}, {waiting, hanging}));
  ExpectLost(group.Bring(kConfig, Ranks(2), Later()).status(),
             "rank 1 shows no sign of life while starting; rank 0: waited in vain");
}

// Ranks that can't reach each other: each says what it saw.
TEST(WorkerGroupTest, BringSaysWhatEveryRankWaitedFor) {
  SimulatedScript waiting;
  waiting.waits_in_vain = true;
  WorkerGroup group(MakeSimulatedWorkers(2, SimulatedModel{}, {8}, {waiting, waiting}));
  ExpectLost(group.Bring(kConfig, Ranks(2), Later()).status(),
             "rank 0: waited in vain; rank 1: waited in vain");
}

// It is why the other one waited.
TEST(WorkerGroupTest, BringReportsTheRankThatFailsWhileAnotherWaits) {
  SimulatedScript waiting, broken;
  waiting.waits_in_vain = true;
  broken.fail_load = true;
  WorkerGroup group(MakeSimulatedWorkers(2, SimulatedModel{}, {8}, {waiting, broken}));
  EXPECT_EQ(group.Bring(kConfig, Ranks(2), Later()).status().message(), "rank 1: no model");
}

TEST(WorkerGroupTest, BringNamesTheHangingRankAtItsDeadline) {
  SimulatedScript loading, hanging;
  loading.loads_for_ever = true;
  hanging.loads_for_ever = true;
  hanging.answers_pings = false;
  const Deadline now = Deadline::After(Duration::zero());
  WorkerGroup group(MakeSimulatedWorkers(2, SimulatedModel{}, {8}, {loading, hanging}));
  ExpectLost(group.Bring(kConfig, Ranks(2), now).status(),
             "rank 1 shows no sign of life while starting; no answer in time");
  WorkerGroup slow(MakeSimulatedWorkers(2, SimulatedModel{}, {8}, {loading, loading}));
  ExpectLost(slow.Bring(kConfig, Ranks(2), now).status(),
             "rank 0, rank 1 did not start in time (--load-timeout)");
}

TEST(WorkerGroupTest, BringRefusesRanksWithDifferentGroups) {
  std::vector<std::unique_ptr<WorkerClient>> workers;
  workers.push_back(
      std::make_unique<SimulatedWorker>(0, SimulatedModel{}, std::vector<uint32_t>{9, 5}));
  workers.push_back(
      std::make_unique<SimulatedWorker>(1, SimulatedModel{}, std::vector<uint32_t>{7}));
  WorkerGroup group(std::move(workers));
  EXPECT_EQ(group.Bring(kConfig, Ranks(2), Later()).status().code(), absl::StatusCode::kInternal);
}

TEST(WorkerGroupTest, AStepGivesRankZerosRows) {
  WorkerGroup group = Running({{}, {}, {}});
  ASSERT_TRUE(group.Submit(Prefill(1), Later()).ok());
  const auto first = group.Collect(Later());
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->rows.size(), 1u);
  ASSERT_EQ(first->rows[0].tokens.size(), 1u);
  ASSERT_TRUE(group.Submit(Prefill(2), Later()).ok());
  const auto again = group.Collect(Later());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->rows, first->rows);
  EXPECT_TRUE(group.Health().ok());
}

TEST(WorkerGroupTest, ASlowRankIsWaitedFor) {
  EXPECT_TRUE(CollectStatus({{}, FaultAt(1, SimulatedFault::kDelay)}, Later()).ok());
  EXPECT_TRUE(CollectStatus({FaultAt(1, SimulatedFault::kDelay), {}}, Later()).ok());
}

TEST(WorkerGroupTest, ADeadRankIsNamed) {
  ExpectLost(CollectStatus({{}, FaultAt(1, SimulatedFault::kDie)}, Later()),
             "rank 1 exited with signal 9");
  ExpectLost(CollectStatus({FaultAt(1, SimulatedFault::kDie), {}}, Later()),
             "rank 0 exited with signal 9");
}

// Rank 0 reports rank 1 missing in a collective; the rank to name is rank 1.
TEST(WorkerGroupTest, TheDeadRankIsNamedBeforeThoseThatMissIt) {
  ExpectLost(CollectStatus({FaultAt(1, SimulatedFault::kError), FaultAt(1, SimulatedFault::kDie)},
                           Later()),
             "rank 1 exited with signal 9");
  ExpectLost(
      CollectStatus({FaultAt(1, SimulatedFault::kHang), FaultAt(1, SimulatedFault::kDie)}, Later()),
      "rank 1 exited with signal 9");
}

TEST(WorkerGroupTest, ASilentRankIsNamedAtTheDeadline) {
  ExpectLost(CollectStatus({{}, FaultAt(1, SimulatedFault::kHang)}, Later()),
             "rank 1 did not answer step 1 in time");
  ExpectLost(CollectStatus({FaultAt(1, SimulatedFault::kHang), FaultAt(1, SimulatedFault::kHang)},
                           Later()),
             "rank 0, rank 1 did not answer step 1 in time");
  ExpectLost(CollectStatus({FaultAt(1, SimulatedFault::kError), FaultAt(1, SimulatedFault::kHang)},
                           Later()),
             "rank 1 did not answer step 1 in time; rank 0 failed in step 1: scripted error");
}

TEST(WorkerGroupTest, WrongAnswersAreNotTaken) {
  ExpectLost(CollectStatus({{}, FaultAt(1, SimulatedFault::kWrongEpoch)}, Later()),
             "rank 1 answered as rank 1 epoch 4 step 1, needed epoch 3 step 1");
  ExpectLost(CollectStatus({{}, FaultAt(1, SimulatedFault::kWrongStepId)}, Later()),
             "rank 1 answered as rank 1 epoch 3 step 2, needed epoch 3 step 1");
  ExpectLost(CollectStatus({{}, FaultAt(1, SimulatedFault::kError)}, Later()),
             "rank 1 failed in step 1: scripted error");
  ExpectLost(CollectStatus({{}, FaultAt(1, SimulatedFault::kRefuse)}, Later()),
             "rank 1: the channel is closed");
}

TEST(WorkerGroupTest, AFrameOfAnotherEpochIsRefusedByTheWorker) {
  WorkerGroup group = Running({{}});
  ASSERT_TRUE(group.Submit(Prefill(1, Epoch{2}), Later()).ok());
  const absl::Status status = group.Collect(Later()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
}

TEST(WorkerGroupTest, ABadDescriptorIsRefusedByTheWorker) {
  WorkerGroup group = Running({{}});
  step::StepDescriptor step = Prefill(1);
  step.groups[0].blocks = {8};
  step.groups[0].slot_mapping = {32, 33, 34};
  ASSERT_TRUE(group.Submit(step, Later()).ok());
  const absl::Status status = group.Collect(Later()).status();
  EXPECT_NE(status.message().find("rank 0 failed in step 1: step: KV group 0: block 0"),
            absl::string_view::npos)
      << status;
}

TEST(WorkerGroupTest, AnIdleRankThatIsSilentIsNamed) {
  SimulatedClock clock;
  SimulatedScript silent;
  silent.answers_pings = false;
  WorkerGroup group = Running({{}, silent});
  clock.Advance(std::chrono::hours(1));  // a ping of the epoch before does not count
  // 8 s less the 2 s between pings.
  for (int second = 0; second < 6; ++second) {
    EXPECT_TRUE(group.Heartbeat(std::chrono::seconds(8), clock).ok()) << second;
    clock.Advance(std::chrono::seconds(1));
  }
  ExpectLost(group.Heartbeat(std::chrono::seconds(8), clock),
             "rank 1 shows no sign of life for 8s");
  ExpectLost(group.Heartbeat(std::chrono::seconds(8), clock), "rank 1 exited with signal 9");
}

TEST(WorkerGroupTest, APauseOfTheCoordinatorItselfIsNoSilence) {
  SimulatedClock clock;
  SimulatedScript silent;
  silent.answers_pings = false;
  WorkerGroup group = Running({silent});
  EXPECT_TRUE(group.Heartbeat(std::chrono::seconds(8), clock).ok());
  clock.Advance(std::chrono::minutes(1));
  EXPECT_TRUE(group.Heartbeat(std::chrono::seconds(8), clock).ok());
  clock.Advance(std::chrono::seconds(1));
  ExpectLost(group.Heartbeat(std::chrono::seconds(8), clock),
             "rank 0 shows no sign of life for 8s");
}

TEST(WorkerGroupTest, NoRankStartsWithFewerBlocksThanBefore) {
  WorkerGroup group = Running({{}, {}});
  const auto blocks = group.Bring(kConfig, Ranks(2, Epoch{4}), Later(), {1u << 20});
  EXPECT_EQ(blocks.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(WorkerGroupTest, ALiveGroupComesUpAgainWithAHigherEpoch) {
  WorkerGroup group = Running({{}, {}});
  ASSERT_TRUE(group.Submit(Prefill(1), Later()).ok());  // never collected: lost with its epoch
  ASSERT_TRUE(group.Bring(kConfig, Ranks(2, Epoch{4}), Later()).ok());
  ASSERT_TRUE(group.Submit(Prefill(1, Epoch{4}), Later()).ok());
  EXPECT_TRUE(group.Collect(Later()).ok());
}

}  // namespace
}  // namespace tandem::coordinator
