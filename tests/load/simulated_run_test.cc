// Runs on a simulated server whose steps take 10 ms for one token, 1 ms for each more, and nothing
// for attention, so that every time can be told beforehand.
#include "tests/load/simulated_run.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace tandem::load {
namespace {

using std::chrono::milliseconds;

SimulatedServer Server() {
  SimulatedServer server;
  coordinator::SchedulerConfig& scheduler = server.engine.scheduler;
  scheduler.max_num_seqs = 4;
  scheduler.max_num_batched_tokens = 101;
  scheduler.chunked_prefill_size = 101;
  scheduler.max_model_len = 1000;
  server.engine.kv_cache.block_size = 10;
  server.engine.kv_cache.groups = {{.num_blocks = 400}};
  server.engine.kv_cache.prefix_hash_key = 1;
  server.engine.vocab_size = 1000;
  server.engine.pipeline_depth = 1;
  server.steps = {.prefill = {.sizes = {1, 101}, .us = {10e3, 110e3}},
                  .decode = {.sizes = {1, 101}, .us = {10e3, 110e3}}};
  return server;
}

// Prompts of `length` tokens, none of them alike.
std::vector<LoadRequest> Requests(size_t count, uint32_t length, uint32_t output) {
  std::vector<LoadRequest> requests(count);
  int32_t id = 0;
  for (LoadRequest& request : requests) {
    for (uint32_t i = 0; i < length; ++i) request.token_ids.push_back(id++ % 1000);
    request.prompt_tokens = length;
    request.output_tokens = output;
  }
  return requests;
}

RunRecord RunOn(const SimulatedServer& server, const std::vector<LoadRequest>& requests,
                const RunSettings& settings) {
  return SimulatedRun(server, requests, settings, /*priority=*/0, milliseconds(10)).Run();
}

TEST(SimulatedRun, OneRequestTakesTheTimeOfItsSteps) {
  const RunRecord record = RunOn(Server(), Requests(1, 21, 4), {});
  ASSERT_EQ(record.samples.size(), 1u);
  const Sample& sample = record.samples[0];
  EXPECT_TRUE(sample.completed()) << sample.error;
  EXPECT_EQ(sample.prompt_tokens, 21u);
  EXPECT_EQ(sample.output_tokens, 4u);
  ASSERT_EQ(sample.arrivals.size(), 4u);
  EXPECT_DOUBLE_EQ(sample.ttft_s(), 0.030);  // 10 + 20 ms
  EXPECT_DOUBLE_EQ(sample.tpot_s(), 0.010);
  EXPECT_DOUBLE_EQ(sample.e2el_s(), 0.060);
  EXPECT_DOUBLE_EQ(record.duration_s, 0.060);
  EXPECT_EQ(record.end, RunEnd::kDone);
}

TEST(SimulatedRun, ALongPromptIsComputedInChunks) {
  const RunRecord record = RunOn(Server(), Requests(1, 202, 1), {});
  EXPECT_DOUBLE_EQ(record.samples[0].ttft_s(), 0.220);
}

TEST(SimulatedRun, RequestsAtTheirTimesShareSteps) {
  // The second comes while the first decodes, and is in the step after that.
  const RunRecord record = RunOn(Server(), Requests(2, 11, 3), {.times_s = {0, 0.025}});
  const auto& [first, second] = std::pair(record.samples[0], record.samples[1]);
  EXPECT_DOUBLE_EQ(first.arrivals[0].at_s, 0.020);
  EXPECT_DOUBLE_EQ(first.arrivals[1].at_s, 0.030);
  EXPECT_DOUBLE_EQ(first.arrivals[2].at_s, 0.051);  // with 11 tokens of the second
  EXPECT_DOUBLE_EQ(second.intended_s, 0.025);
  EXPECT_DOUBLE_EQ(second.arrivals[0].at_s, 0.051);
  EXPECT_DOUBLE_EQ(second.ttft_s(), 0.026);
}

TEST(SimulatedRun, AnIdleServerBeginsWithTheFirstOfSeveral) {
  const RunRecord record = RunOn(Server(), Requests(3, 11, 1), {});
  EXPECT_DOUBLE_EQ(record.samples[0].ttft_s(), 0.020);
  EXPECT_DOUBLE_EQ(record.samples[1].ttft_s(), 0.020 + 0.031);
  EXPECT_DOUBLE_EQ(record.samples[2].ttft_s(), 0.020 + 0.031);
}

TEST(SimulatedRun, AClosedLoopSendsWhenOneEnds) {
  const RunRecord record = RunOn(Server(), Requests(3, 11, 2), {.max_concurrency = 1});
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(record.samples[i].intended_s, 0.030 * static_cast<double>(i));
    EXPECT_DOUBLE_EQ(record.samples[i].ttft_s(), 0.020);
  }
}

TEST(SimulatedRun, AnOpenLoopWithALimitCountsTheWaitAtTheClient) {
  const RunRecord record =
      RunOn(Server(), Requests(2, 11, 2), {.times_s = {0, 0.010}, .max_concurrency = 1});
  EXPECT_DOUBLE_EQ(record.samples[1].intended_s, 0.010);
  EXPECT_DOUBLE_EQ(record.samples[1].sent_s, 0.030);
  EXPECT_DOUBLE_EQ(record.samples[1].ttft_s(), 0.040);
}

TEST(SimulatedRun, MoreThanRunAtOnceWait) {
  const RunRecord record = RunOn(Server(), Requests(5, 11, 3), {});
  EXPECT_GT(record.samples[4].ttft_s(), record.samples[0].e2el_s());
  size_t most_running = 0;
  for (const StatsPoint& point : record.stats) {
    most_running = std::max(most_running, static_cast<size_t>(point.running));
  }
  EXPECT_EQ(most_running, 4u);
}

TEST(SimulatedRun, PrefixesAreFoundInTheCache) {
  std::vector<LoadRequest> requests = Requests(2, 101, 1);
  requests[1].token_ids = requests[0].token_ids;
  SimulatedServer server = Server();
  const RunSettings settings{.times_s = {0, 1}};
  EXPECT_NEAR(RunOn(server, requests, settings).samples[1].ttft_s(), 0.010, 1e-9);
  server.engine.kv_cache.enable_prefix_cache = false;
  EXPECT_NEAR(RunOn(server, requests, settings).samples[1].ttft_s(), 0.110, 1e-9);
}

TEST(SimulatedRun, LittleMemoryPreemptsAndLosesNothing) {
  SimulatedServer server = Server();
  server.engine.kv_cache.groups[0].num_blocks = 12;
  const RunRecord record = RunOn(server, Requests(4, 20, 40), {});
  for (const Sample& sample : record.samples) {
    EXPECT_TRUE(sample.completed()) << sample.error;
    EXPECT_EQ(sample.output_tokens, 40u);
  }
  EXPECT_GT(record.duration_s, RunOn(Server(), Requests(4, 20, 40), {}).duration_s);
}

TEST(SimulatedRun, AFullQueueRefuses) {
  SimulatedServer server = Server();
  server.engine.max_queued_requests = 1;
  const RunRecord record = RunOn(server, Requests(7, 11, 3), {});
  size_t failed = 0;
  for (const Sample& sample : record.samples) {
    if (sample.outcome != Outcome::kFailed) continue;
    ++failed;
    EXPECT_TRUE(sample.error.starts_with("the queue is full: 5 requests")) << sample.error;
  }
  EXPECT_EQ(failed, 2u);
}

TEST(SimulatedRun, WhatCanNeverFitIsRefused) {
  const RunRecord record = RunOn(Server(), Requests(1, 999, 10), {});
  EXPECT_EQ(record.samples[0].outcome, Outcome::kFailed);
  EXPECT_NE(record.samples[0].error, "");
  EXPECT_EQ(record.end, RunEnd::kDone);
}

TEST(SimulatedRun, ARequestThatTakesTooLongFails) {
  const RunRecord record =
      RunOn(Server(), Requests(1, 11, 100), {.request_timeout = milliseconds(300)});
  EXPECT_EQ(record.samples[0].outcome, Outcome::kFailed);
  EXPECT_NEAR(record.samples[0].end_s, 0.3, 0.02);
}

TEST(SimulatedRun, AClientThatHangsUpEndsItsRequest) {
  std::vector<LoadRequest> requests = Requests(2, 11, 50);
  requests[0].cancel_after_messages = 3;
  const RunRecord record = RunOn(Server(), requests, {.max_concurrency = 1});
  EXPECT_EQ(record.samples[0].outcome, Outcome::kCancelled);
  EXPECT_EQ(record.samples[0].arrivals.size(), 3u);
  EXPECT_LT(record.samples[0].end_s, 0.070);
  EXPECT_TRUE(record.samples[1].completed());
}

TEST(SimulatedRun, NothingIsSentAfterTheLongestDuration) {
  const RunRecord record =
      RunOn(Server(), Requests(9, 11, 2), {.max_concurrency = 1, .max_duration = milliseconds(70)});
  EXPECT_EQ(record.samples.size(), 3u);
  EXPECT_EQ(record.not_sent, 6u);
}

TEST(SimulatedRun, AStepBeyondItsTimeoutLosesTheServer) {
  SimulatedServer server = Server();
  server.engine.step_timeout = milliseconds(50);
  const RunRecord record = RunOn(server, Requests(3, 101, 2), {.times_s = {0, 1, 2}});
  EXPECT_EQ(record.end, RunEnd::kServerLost);
  EXPECT_EQ(record.not_sent, 2u);
  EXPECT_EQ(record.samples[0].outcome, Outcome::kFailed);
}

TEST(SimulatedRun, AStoppedRunEndsWhatIsInFlight) {
  const SimulatedServer server = Server();
  const std::vector<LoadRequest> requests = Requests(10'000, 11, 900);  // minutes of work
  const RunSettings settings{.max_concurrency = 2};
  SimulatedRun run(server, requests, settings, 0, milliseconds(1000));
  std::thread stopper([&] { run.Stop(); });
  const RunRecord record = run.Run();
  stopper.join();
  EXPECT_EQ(record.end, RunEnd::kInterrupted);
  EXPECT_GT(record.not_sent, 0u);
  for (const Sample& sample : record.samples) {
    EXPECT_TRUE(sample.completed() || sample.outcome == Outcome::kCut) << sample.error;
  }
}

TEST(SimulatedRun, EqualRunsHaveEqualRecords) {
  std::vector<double> times;
  for (int i = 0; i < 60; ++i) times.push_back(0.013 * i);
  const std::vector<LoadRequest> requests = Requests(60, 37, 9);
  const RunRecord first = RunOn(Server(), requests, {.times_s = times});
  const RunRecord second = RunOn(Server(), requests, {.times_s = times});
  ASSERT_EQ(first.samples.size(), 60u);
  for (size_t i = 0; i < 60; ++i) {
    EXPECT_EQ(first.samples[i].end_s, second.samples[i].end_s);
    EXPECT_EQ(first.samples[i].arrivals.size(), 9u);
  }
}

}  // namespace
}  // namespace tandem::load
