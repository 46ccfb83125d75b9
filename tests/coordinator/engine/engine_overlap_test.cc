// The engine with steps in flight gives what it gives without: tokens, usage, ends. What differs is
// that steps refer to tokens of the step before, and an end may be found out one step late.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/step/codec.h"
#include "tests/coordinator/engine/engine_fixture.h"

namespace tandem::coordinator {
namespace {

// Counts what steps refer to.
class CountingWorker : public SimulatedWorker {
 public:
  CountingWorker(const SimulatedEngine& engine, size_t& num_references)
      : SimulatedWorker(0, engine.Model(), engine.NumBlocks()), num_references_(num_references) {}

  absl::Status Submit(std::span<const uint8_t> frame, Deadline deadline) override {
    const auto step = step::ParseDescriptor(frame);
    EXPECT_TRUE(step.ok()) << step.status();
    if (step.ok()) num_references_ += step->references.size();
    return SimulatedWorker::Submit(frame, deadline);
  }

 private:
  size_t& num_references_;
};

// Says that every step took `time`.
class TimedWorker : public SimulatedWorker {
 public:
  TimedWorker(const SimulatedEngine& engine, std::chrono::microseconds time)
      : SimulatedWorker(0, engine.Model(), engine.NumBlocks()), time_(time) {}

  absl::Status Submit(std::span<const uint8_t> frame, Deadline deadline) override {
    most_in_flight_ = std::max(most_in_flight_, ++in_flight_);
    return SimulatedWorker::Submit(frame, deadline);
  }
  absl::StatusOr<step::StepResult> Collect(Deadline deadline) override {
    auto result = SimulatedWorker::Collect(deadline);
    --in_flight_;
    if (result.ok()) result->timings.wait_us = static_cast<uint32_t>(time_.count());
    return result;
  }
  int most_in_flight() const { return most_in_flight_; }
  void Forget() { most_in_flight_ = 0; }

 private:
  const std::chrono::microseconds time_;
  int in_flight_ = 0, most_in_flight_ = 0;
};

struct Outcome {
  std::vector<RecordingStream::Record> records;
  EngineStats stats;
  size_t num_references = 0;
};

SimulatedEngine Engine(uint32_t depth) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.ranks = 1;
  engine.config.pipeline_depth = depth;
  return engine;
}

Outcome RunAll(const SimulatedEngine& engine, std::vector<Request> requests, size_t stop_after) {
  Outcome run;
  std::vector<std::unique_ptr<WorkerClient>> workers;
  workers.push_back(std::make_unique<CountingWorker>(engine, run.num_references));
  auto core = engine.MakeOn(std::move(workers));
  std::vector<std::shared_ptr<RecordingStream>> streams;
  for (Request& request : requests) {
    streams.push_back(std::make_shared<RecordingStream>(stop_after));
    request.stream = streams.back();
    core->Add(std::move(request), streams.size());
  }
  for (int step = 0; !core->idle() && step < 10000; ++step) {
    const absl::Status status = core->Step();
    EXPECT_TRUE(status.ok()) << status;
    const absl::Status integrity = core->CheckIntegrity();
    EXPECT_TRUE(integrity.ok()) << integrity;
    if (!status.ok()) break;
  }
  for (const auto& stream : streams) run.records.push_back(stream->record());
  run.stats = core->Stats();
  EXPECT_EQ(run.stats.free_blocks, run.stats.total_blocks);
  return run;
}

// Of different lengths, some sampled, every fourth with penalties.
std::vector<Request> Requests() {
  std::vector<Request> requests;
  for (uint32_t i = 0; i < 12; ++i) {
    requests.push_back(MakeRequest("r" + std::to_string(i), 1 + 3 * i, 5 + i, nullptr));
    Sampling& sampling = requests.back().sampling;
    sampling.temperature = i % 2 == 0 ? 0.0f : 0.8f;
    sampling.seed = i;
    if (i % 3 == 0) sampling.logprobs = 2;
    if (i % 5 == 0) sampling.prompt_logprobs = 1;
    if (i % 4 == 3) sampling.penalties.frequency = 0.5f;
    if (i % 4 == 2) {
      for (TokenId id = 0; id < 97; id += 5) sampling.end_ids.push_back(id);
      sampling.min_tokens = 4;
    }
  }
  return requests;
}

void ExpectSame(const Outcome& found, const Outcome& wanted) {
  ASSERT_EQ(found.records.size(), wanted.records.size());
  for (size_t i = 0; i < found.records.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(found.records[i].tokens, wanted.records[i].tokens);
    EXPECT_EQ(found.records[i].logprobs, wanted.records[i].logprobs);
    EXPECT_EQ(found.records[i].prompt_logprobs, wanted.records[i].prompt_logprobs);
    EXPECT_EQ(found.records[i].reason, wanted.records[i].reason);
    EXPECT_EQ(found.records[i].num_ends, 1);
    EXPECT_EQ(found.records[i].usage.completion_tokens, wanted.records[i].usage.completion_tokens);
  }
}

TEST(EngineOverlapTest, LongStepsAreSentOneAtATime) {
  using std::chrono::milliseconds;
  for (const auto& [time, wanted] : {std::pair(milliseconds(9), 2), {milliseconds(10), 1}}) {
    SimulatedEngine engine = Engine(2);
    engine.config.overlap_below = milliseconds(10);
    auto worker = std::make_unique<TimedWorker>(engine, time);
    TimedWorker& timed = *worker;
    std::vector<std::unique_ptr<WorkerClient>> workers;
    workers.push_back(std::move(worker));
    auto core = engine.MakeOn(std::move(workers));
    core->Add(MakeRequest("r", 3, 20, std::make_shared<RecordingStream>(SIZE_MAX)), 1);
    ASSERT_TRUE(core->Step().ok());  // before it nothing is known
    ASSERT_TRUE(core->Step().ok());
    timed.Forget();
    while (!core->idle()) ASSERT_TRUE(core->Step().ok());
    EXPECT_EQ(timed.most_in_flight(), wanted);
  }
}

TEST(EngineOverlapTest, TheSameTokensAtEveryDepthChunkAndNumberOfBlocks) {
  const Outcome wanted = RunAll(Engine(1), Requests(), SIZE_MAX);
  EXPECT_EQ(wanted.num_references, 0u);
  EXPECT_EQ(wanted.stats.surplus_tokens, 0);
  for (const uint32_t depth : {2u, 3u}) {
    for (const uint32_t chunk : {1u, 7u, 32u}) {
      for (const uint32_t blocks : {16u, 128u}) {
        SCOPED_TRACE(testing::Message()
                     << depth << " steps, chunks of " << chunk << ", " << blocks);
        SimulatedEngine engine = Engine(depth);
        engine.config.scheduler.chunked_prefill_size = chunk;
        engine.config.kv_cache.groups[0].num_blocks = blocks;
        const Outcome run = RunAll(engine, Requests(), SIZE_MAX);
        ExpectSame(run, wanted);
        EXPECT_GT(run.num_references, 20u);
        EXPECT_EQ(run.stats.preemptions > 0, blocks == 16);
      }
    }
  }
}

TEST(EngineOverlapTest, AForeseenEndCostsNothing) {
  const Outcome alone = RunAll(Engine(1), {MakeRequest("a", 9, 12, nullptr)}, SIZE_MAX);
  const Outcome run = RunAll(Engine(2), {MakeRequest("a", 9, 12, nullptr)}, SIZE_MAX);
  EXPECT_EQ(run.records[0].tokens, alone.records[0].tokens);
  EXPECT_EQ(run.stats.steps, 12);
  EXPECT_EQ(run.num_references, 11u);  // all but the prompt
  EXPECT_EQ(run.stats.surplus_tokens, 0);
}

TEST(EngineOverlapTest, AnEndIdCostsOneTokenThatIsNotDelivered) {
  const Outcome free_run = RunAll(Engine(1), {MakeRequest("a", 9, 12, nullptr)}, SIZE_MAX);
  Request request = MakeRequest("a", 9, 12, nullptr);
  request.sampling.end_ids = {free_run.records[0].tokens[4]};
  const Outcome alone = RunAll(Engine(1), {request}, SIZE_MAX);
  const Outcome run = RunAll(Engine(2), {request}, SIZE_MAX);
  ExpectSame(run, alone);
  EXPECT_EQ(run.records[0].reason, FinishReason::kStop);
  EXPECT_EQ(run.stats.steps, alone.stats.steps + 1);
  EXPECT_EQ(run.stats.surplus_tokens, 1);
  // Also where the token computed in vain has filled a block.
  EXPECT_EQ(run.stats.cached_blocks, alone.stats.cached_blocks);
}

TEST(EngineOverlapTest, AStopStringIsLikeAnEndId) {
  for (const size_t length : {1, 2, 3, 4, 5}) {
    const Outcome alone = RunAll(Engine(1), {MakeRequest("a", 9, 12, nullptr)}, length);
    const Outcome run = RunAll(Engine(2), {MakeRequest("a", 9, 12, nullptr)}, length);
    EXPECT_EQ(run.records[0].tokens, alone.records[0].tokens);
    EXPECT_EQ(run.records[0].tokens.size(), length);
    EXPECT_EQ(run.stats.surplus_tokens, 1);
    EXPECT_EQ(run.stats.cached_blocks, alone.stats.cached_blocks);
  }
}

TEST(EngineOverlapTest, PenaltiesRunStepByStep) {
  Request request = MakeRequest("a", 9, 12, nullptr);
  request.sampling.penalties.repetition = 1.5f;
  EXPECT_EQ(RunAll(Engine(2), {request}, SIZE_MAX).num_references, 0u);
  // These need no tokens, only their number.
  request.sampling.penalties.repetition = 1;
  request.sampling.logit_bias = {{3, 1.0f}};
  request.sampling.banned_sequences = {{5}};
  request.sampling.end_ids = {7};
  request.sampling.min_tokens = 12;
  const Outcome run = RunAll(Engine(2), {request}, SIZE_MAX);
  EXPECT_EQ(run.num_references, 11u);
  ExpectSame(run, RunAll(Engine(1), {request}, SIZE_MAX));
}

}  // namespace
}  // namespace tandem::coordinator
