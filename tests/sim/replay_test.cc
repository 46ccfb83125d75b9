// The frames of an epoch are all that a worker needs: replayed from the epoch's start on a fresh
// worker they give the same results, and from anywhere else they are refused.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/coordinator/engine/engine_fixture.h"

namespace tandem::coordinator {
namespace {

Deadline Later() { return Deadline::After(std::chrono::minutes(1)); }

struct Recording {
  std::vector<std::vector<uint8_t>> frames;
  std::vector<step::StepResult> results;
};

class RecordingWorker : public SimulatedWorker {
 public:
  RecordingWorker(const SimulatedEngine& engine, Recording& recording)
      : SimulatedWorker(0, engine.Model(), engine.NumBlocks()), recording_(recording) {}

  absl::Status Submit(std::span<const uint8_t> frame, Deadline deadline) override {
    recording_.frames.emplace_back(frame.begin(), frame.end());
    return SimulatedWorker::Submit(frame, deadline);
  }
  absl::StatusOr<step::StepResult> Collect(Deadline deadline) override {
    auto result = SimulatedWorker::Collect(deadline);
    if (result.ok()) recording_.results.push_back(*result);
    return result;
  }

 private:
  Recording& recording_;
};

// A full and a windowed group, too few blocks for all requests, so that some are preempted, and
// more requests than slots.
SimulatedEngine Engine(uint32_t depth) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.ranks = 1;
  engine.config.pipeline_depth = depth;
  engine.config.scheduler.max_num_seqs = 4;
  engine.config.scheduler.max_num_batched_tokens = 24;
  engine.config.scheduler.chunked_prefill_size = 10;
  engine.config.kv_cache.groups = {{.num_blocks = 24, .window_tokens = 0},
                                   {.num_blocks = 20, .window_tokens = 9}};
  return engine;
}

Recording Record(const SimulatedEngine& engine) {
  Recording recording;
  std::vector<std::unique_ptr<WorkerClient>> workers;
  workers.push_back(std::make_unique<RecordingWorker>(engine, recording));
  auto core = engine.MakeOn(std::move(workers));
  for (uint64_t handle = 1; handle <= 9; ++handle) {
    // Three prompts, each three times: prefixes are shared.
    Request request = MakeRequest(std::to_string(handle % 3), 18 + 5 * (handle % 3), 25,
                                  std::make_shared<RecordingStream>());
    core->Add(std::move(request), handle);
  }
  while (!core->idle()) {
    const absl::Status status = core->Step();
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) break;
  }
  EXPECT_GT(core->Stats().preemptions, 0);
  return recording;
}

// What a fresh worker answers to frames[from...], until it refuses one.
std::vector<step::StepResult> Replay(const SimulatedEngine& engine, const Recording& recording,
                                     size_t from) {
  SimulatedWorker worker(0, engine.Model(), engine.NumBlocks());
  EXPECT_TRUE(worker.Configure(engine.WorkerOf(), engine.AssignmentOf(0)).ok());
  EXPECT_TRUE(worker.Start(engine.NumBlocks()).ok());
  std::vector<step::StepResult> results;
  for (size_t i = from; i < recording.frames.size(); ++i) {
    EXPECT_TRUE(worker.Submit(recording.frames[i], Later()).ok());
    const auto result = worker.Collect(Later());
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) break;
    results.push_back(*result);
    if (!result->status.ok()) break;
  }
  return results;
}

TEST(ReplayTest, FromTheStartOfTheEpochTheSameResults) {
  for (uint32_t depth : {1u, 2u}) {
    const SimulatedEngine engine = Engine(depth);
    const Recording recording = Record(engine);
    ASSERT_GT(recording.frames.size(), 50u);
    EXPECT_EQ(Replay(engine, recording, 0), recording.results);
  }
}

TEST(ReplayTest, FromTheMiddleItIsRefused) {
  const SimulatedEngine engine = Engine(1);
  const Recording recording = Record(engine);
  const auto results = Replay(engine, recording, recording.frames.size() / 2);
  const absl::Status& status = results.back().status;
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("has 0 blocks, needed"), std::string::npos)
      << status;
}

}  // namespace
}  // namespace tandem::coordinator
