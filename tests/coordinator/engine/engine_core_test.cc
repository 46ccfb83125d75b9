#include "coordinator/engine/engine_core.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/coordinator/engine/engine_fixture.h"

namespace tandem::coordinator {
namespace {

using Streams = std::vector<std::shared_ptr<RecordingStream>>;

// Runs to the end; checks every block after every step.
std::vector<TokenId> RunAlone(Request request) {
  auto stream = std::make_shared<RecordingStream>();
  request.stream = stream;
  auto core = SimulatedEngine::Small().Make();
  core->Add(std::move(request), 1);
  RunAll(*core);
  return stream->record().tokens;
}

TEST(EngineCoreTest, GeneratesUpToMaxTokens) {
  auto core = SimulatedEngine::Small().Make();
  auto stream = std::make_shared<RecordingStream>();
  core->Add(MakeRequest("a", 9, 12, stream), 1);
  EXPECT_EQ(core->Stats().waiting, 1);
  ASSERT_TRUE(core->Step().ok());
  EXPECT_EQ(core->Stats().running, 1);
  EXPECT_EQ(stream->record().tokens.size(), 1u);
  RunAll(*core);
  const auto record = stream->record();
  EXPECT_EQ(record.tokens.size(), 12u);
  EXPECT_EQ(record.num_ends, 1);
  EXPECT_EQ(record.reason, FinishReason::kLength);
  EXPECT_EQ(record.usage.prompt_tokens, 9u);
  EXPECT_EQ(record.usage.completion_tokens, 12u);
  EXPECT_EQ(record.usage.cached_tokens, 0u);
  const EngineStats stats = core->Stats();
  EXPECT_EQ(stats.steps, 12);
  EXPECT_EQ(stats.epoch, 5);
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.waiting, 0);
  EXPECT_EQ(core->timings().steps, 12);
  EXPECT_GT(core->timings().coordinator_ns(), 0);
}

TEST(EngineCoreTest, AnEmptyEngineDoesNothing) {
  auto core = SimulatedEngine::Small().Make();
  EXPECT_TRUE(core->Step().ok());
  EXPECT_EQ(core->Stats().steps, 0);
}

TEST(EngineCoreTest, AnEndIdStopsAndIsPartOfTheOutput) {
  const std::vector<TokenId> free_run = RunAlone(MakeRequest("a", 9, 12, nullptr));
  auto core = SimulatedEngine::Small().Make();
  auto stream = std::make_shared<RecordingStream>();
  Request request = MakeRequest("a", 9, 12, stream);
  request.sampling.end_ids = {free_run[4]};
  core->Add(std::move(request), 1);
  RunAll(*core);
  const auto record = stream->record();
  EXPECT_EQ(record.reason, FinishReason::kStop);
  EXPECT_EQ(record.tokens.back(), free_run[4]);
  EXPECT_LE(record.tokens.size(), 5u);
  EXPECT_EQ(record.usage.completion_tokens, record.tokens.size());
}

TEST(EngineCoreTest, AnEndIdAsTheLastTokenIsAStop) {
  const std::vector<TokenId> free_run = RunAlone(MakeRequest("a", 9, 1, nullptr));
  auto core = SimulatedEngine::Small().Make();
  auto stream = std::make_shared<RecordingStream>();
  Request request = MakeRequest("a", 9, 1, stream);
  request.sampling.end_ids = free_run;
  core->Add(std::move(request), 1);
  RunAll(*core);
  EXPECT_EQ(stream->record().reason, FinishReason::kStop);
}

TEST(EngineCoreTest, MinTokensBansEndIds) {
  auto core = SimulatedEngine::Small().Make();
  auto stream = std::make_shared<RecordingStream>();
  Request request = MakeRequest("a", 9, 30, stream);
  // Half the vocabulary ends the generation.
  for (TokenId id = 0; id < 97; id += 2) request.sampling.end_ids.push_back(id);
  request.sampling.min_tokens = 20;
  core->Add(std::move(request), 1);
  RunAll(*core);
  const auto record = stream->record();
  ASSERT_GE(record.tokens.size(), 20u);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(record.tokens[i] % 2, 1) << i;
  EXPECT_EQ(record.reason, FinishReason::kStop);
}

TEST(EngineCoreTest, AListenerMayStopAndItsBlocksAreFree) {
  auto core = SimulatedEngine::Small().Make();
  auto stream = std::make_shared<RecordingStream>(3);
  core->Add(MakeRequest("a", 9, 20, stream), 1);
  RunAll(*core);
  EXPECT_EQ(stream->record().tokens.size(), 3u);
  EXPECT_EQ(stream->record().num_ends, 1);
}

TEST(EngineCoreTest, CancelFreesBlocksAtOnce) {
  auto core = SimulatedEngine::Small().Make();
  Streams streams;
  for (uint64_t i = 1; i <= 3; ++i) {
    streams.push_back(std::make_shared<RecordingStream>());
    core->Add(MakeRequest("r" + std::to_string(i), 9, 20, streams.back()), i);
  }
  core->Cancel(3);  // never ran
  ASSERT_TRUE(core->Step().ok());
  core->Cancel(1);
  core->Cancel(1);
  core->Cancel(77);
  EXPECT_EQ(core->Stats().free_blocks, 64 - 3);
  EXPECT_EQ(streams[0]->record().reason, FinishReason::kCancelled);
  EXPECT_EQ(streams[0]->record().code, absl::StatusCode::kOk);
  EXPECT_EQ(streams[0]->record().usage.completion_tokens, 1u);
  EXPECT_EQ(streams[2]->record().num_ends, 1);
  RunAll(*core);
  EXPECT_EQ(streams[1]->record().tokens.size(), 20u);
}

TEST(EngineCoreTest, ASharedPromptIsComputedOnce) {
  auto core = SimulatedEngine::Small().Make();
  auto first = std::make_shared<RecordingStream>();
  auto second = std::make_shared<RecordingStream>();
  core->Add(MakeRequest("a", 17, 5, first), 1);
  RunAll(*core);
  core->Add(MakeRequest("a", 17, 5, second), 2);
  RunAll(*core);
  EXPECT_EQ(first->record().usage.cached_tokens, 0u);
  EXPECT_EQ(second->record().usage.cached_tokens, 16u);
  EXPECT_EQ(first->record().tokens, second->record().tokens);
}

TEST(EngineCoreTest, PreemptedRequestsGiveTheSameTokens) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.config.kv_cache.groups[0].num_blocks = 10;
  auto core = engine.Make();
  Streams streams;
  for (uint64_t i = 1; i <= 6; ++i) {
    streams.push_back(std::make_shared<RecordingStream>());
    core->Add(MakeRequest("r" + std::to_string(i), 5 + i, 20, streams.back()), i);
  }
  RunAll(*core);
  EXPECT_GT(core->Stats().preemptions, 0);
  for (uint64_t i = 1; i <= 6; ++i) {
    EXPECT_EQ(streams[i - 1]->record().tokens,
              RunAlone(MakeRequest("r" + std::to_string(i), 5 + i, 20, nullptr)));
  }
}

TEST(EngineCoreTest, LogitsGoToTheSink) {
  auto core = SimulatedEngine::Small().Make();
  std::vector<std::vector<float>> logits;
  auto stream = std::make_shared<RecordingStream>();
  Request request = MakeRequest("a", 9, 4, stream);
  request.want_logits = true;
  request.logits_sink = &logits;
  core->Add(std::move(request), 1);
  core->Add(MakeRequest("b", 5, 4, std::make_shared<RecordingStream>()), 2);
  RunAll(*core);
  ASSERT_EQ(logits.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(logits[i].size(), 97u);
    EXPECT_EQ(std::ranges::max_element(logits[i]) - logits[i].begin(), stream->record().tokens[i]);
  }
}

// What `values` should be for `token` where the engine's logits are `logits`.
void ExpectLogprobs(const TokenLogprobs& values, TokenId token, uint32_t top_n,
                    const std::vector<float>& logits) {
  double sum = 0;
  for (float logit : logits) sum += std::exp(double{logit});
  const auto expect_one = [&](const step::TokenLogprob& one) {
    const float logit = logits[static_cast<size_t>(one.token)];
    EXPECT_NEAR(one.logprob, logit - std::log(sum), 1e-5);
    EXPECT_EQ(one.rank, 1 + std::ranges::count_if(logits, [&](float x) { return x > logit; }));
  };
  EXPECT_EQ(values.token.token, token);
  expect_one(values.token);
  ASSERT_EQ(values.top.size(), top_n);
  for (uint32_t i = 0; i < top_n; ++i) {
    expect_one(values.top[i]);
    EXPECT_EQ(values.top[i].rank, i + 1);
  }
}

// The logits after each prefix of `tokens`, by separate requests.
std::vector<std::vector<float>> LogitsAfter(const std::vector<TokenId>& tokens) {
  auto core = SimulatedEngine::Small().Make();
  std::vector<std::vector<float>> logits;
  for (size_t length = 1; length <= tokens.size(); ++length) {
    Request request = MakeRequest("x", 1, 1, std::make_shared<RecordingStream>());
    request.prompt.assign(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(length));
    request.want_logits = true;
    request.logits_sink = &logits;
    core->Add(std::move(request), length);
    RunAll(*core);
  }
  return logits;
}

TEST(EngineCoreTest, LogprobsBelongToTheirTokens) {
  for (uint32_t chunk : {1u, 5u, 32u}) {
    SCOPED_TRACE(chunk);
    SimulatedEngine engine = SimulatedEngine::Small();
    engine.config.scheduler.chunked_prefill_size = chunk;
    auto core = engine.Make();
    struct LogprobCase {
      std::string id;
      size_t prompt_len;
      std::optional<uint32_t> logprobs, prompt_logprobs;
    };
    // Prompts of one token, of whole chunks, and one token more; with plain requests between them.
    const std::vector<LogprobCase> cases = {{"a", 13, {}, 3},  {"b", 1, 2, 0},  {"c", 9, {}, {}},
                                            {"d", 10, 0, 20},  {"e", 11, 5, 1}, {"f", 6, 20, {}},
                                            {"g", 20, {}, {}}, {"h", 2, {}, 0}};
    Streams streams;
    for (const LogprobCase& wanted : cases) {
      streams.push_back(std::make_shared<RecordingStream>());
      Request request = MakeRequest(wanted.id, wanted.prompt_len, 4, streams.back());
      request.sampling.temperature = 0.8f;  // the values are of the raw distribution all the same
      request.sampling.logprobs = wanted.logprobs;
      request.sampling.prompt_logprobs = wanted.prompt_logprobs;
      core->Add(std::move(request), streams.size());
    }
    RunAll(*core);
    for (size_t i = 0; i < cases.size(); ++i) {
      const LogprobCase& wanted = cases[i];
      SCOPED_TRACE(wanted.id);
      const auto record = streams[i]->record();
      ASSERT_EQ(record.tokens.size(), 4u);
      std::vector<TokenId> all = MakeRequest(wanted.id, wanted.prompt_len, 4, nullptr).prompt;
      all.insert(all.end(), record.tokens.begin(), record.tokens.end());
      const auto logits = LogitsAfter(all);
      ASSERT_EQ(record.prompt_logprobs.size(),
                wanted.prompt_logprobs.has_value() ? wanted.prompt_len - 1 : 0);
      for (size_t p = 0; p < record.prompt_logprobs.size(); ++p) {
        ExpectLogprobs(record.prompt_logprobs[p], all[p + 1], *wanted.prompt_logprobs, logits[p]);
      }
      ASSERT_EQ(record.logprobs.size(), wanted.logprobs.has_value() ? 4 : 0);
      for (size_t t = 0; t < record.logprobs.size(); ++t) {
        ExpectLogprobs(record.logprobs[t], record.tokens[t], *wanted.logprobs,
                       logits[wanted.prompt_len - 1 + t]);
      }
    }
  }
}

TEST(EngineCoreTest, AScoredPromptDoesNotReadThePrefixCacheButFillsIt) {
  auto core = SimulatedEngine::Small().Make();
  uint64_t handle = 0;
  const auto run = [&](bool scores) {
    auto stream = std::make_shared<RecordingStream>();
    Request request = MakeRequest("a", 17, 2, stream);
    if (scores) request.sampling.prompt_logprobs = 1;
    core->Add(std::move(request), ++handle);
    RunAll(*core);
    return stream->record();
  };
  const auto first = run(true);
  EXPECT_EQ(run(false).usage.cached_tokens, 16u);
  const auto again = run(true);
  EXPECT_EQ(again.usage.cached_tokens, 0u);
  EXPECT_EQ(again.prompt_logprobs.size(), 16u);
  EXPECT_EQ(again.prompt_logprobs, first.prompt_logprobs);
}

TEST(EngineCoreTest, ScoredPromptsAreCutToWhatAResultHolds) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.config.scheduler.max_num_seqs = 4;
  engine.config.max_result_bytes = 6200;
  ASSERT_TRUE(engine.config.Validate().ok()) << engine.config.Validate();
  const uint32_t most = engine.config.MaxScoredTokens();
  ASSERT_GT(most, 2u);
  ASSERT_LT(most, 20u);
  auto core = engine.Make();
  Streams streams;
  for (uint64_t i = 1; i <= 5; ++i) {
    streams.push_back(std::make_shared<RecordingStream>());
    Request request = MakeRequest("r" + std::to_string(i), 30, 20, streams.back());
    request.sampling.logprobs = 20;
    if (i != 2) request.sampling.prompt_logprobs = 20;
    core->Add(std::move(request), i);
  }
  RunAll(*core);  // the workers refuse a step whose result may not fit
  for (uint64_t i = 1; i <= 5; ++i) {
    Request request = MakeRequest("r" + std::to_string(i), 30, 20, nullptr);
    const auto alone = std::make_shared<RecordingStream>();
    request.stream = alone;
    request.sampling.logprobs = 20;
    if (i != 2) request.sampling.prompt_logprobs = 20;
    auto ample = SimulatedEngine::Small().Make();
    ample->Add(std::move(request), 1);
    RunAll(*ample);
    const auto record = streams[i - 1]->record();
    EXPECT_EQ(record.tokens, alone->record().tokens);
    EXPECT_EQ(record.logprobs, alone->record().logprobs);
    EXPECT_EQ(record.prompt_logprobs, alone->record().prompt_logprobs);
    EXPECT_EQ(record.prompt_logprobs.size(), i == 2 ? 0u : 29u);
  }
  engine.config.max_result_bytes = 4200;
  EXPECT_EQ(engine.config.Validate().code(), absl::StatusCode::kInvalidArgument);
}

TEST(EngineCoreTest, ALostWorkerEndsTheStepWithItsName) {
  for (SimulatedFault fault : {SimulatedFault::kDie, SimulatedFault::kError,
                               SimulatedFault::kWrongEpoch, SimulatedFault::kRefuse}) {
    SimulatedEngine engine = SimulatedEngine::Small();
    engine.scripts = {{}, {.faults = {{3, fault}}, .delay_polls = 0, .fail_load = false}};
    auto core = engine.Make();
    auto stream = std::make_shared<RecordingStream>();
    core->Add(MakeRequest("a", 9, 20, stream), 1);
    absl::Status status;
    for (int step = 0; step < 3 && status.ok(); ++step) status = core->Step();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_NE(status.message().find("rank 1"), absl::string_view::npos) << status;
    core->EndAll(status, FinishReason::kNone);
    EXPECT_EQ(stream->record().code, absl::StatusCode::kUnavailable);
    // The third step is submitted while the second is in flight.
    EXPECT_EQ(stream->record().tokens.size(), fault == SimulatedFault::kRefuse ? 1u : 2u);
    EXPECT_EQ(core->Stats().free_blocks, core->Stats().total_blocks);
    EXPECT_TRUE(core->CheckIntegrity().ok());
  }
}

TEST(EngineCoreTest, LogitsThatAreNotFiniteEndTheirRequestAlone) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.scripts = {
      {.faults = {{3, SimulatedFault::kNotFinite}}, .delay_polls = 0, .fail_load = false}};
  auto core = engine.Make();
  core->set_explain([] { return "the file has changed"; });
  auto broken = std::make_shared<RecordingStream>(), sound = std::make_shared<RecordingStream>();
  core->Add(MakeRequest("a", 3, 6, broken), 1);
  core->Add(MakeRequest("b", 3, 6, sound), 2);
  while (!core->idle()) ASSERT_TRUE(core->Step().ok());
  EXPECT_EQ(broken->record().code, absl::StatusCode::kInternal);
  EXPECT_EQ(broken->record().message,
            "rank 0, step 3, row 0: the model's logits are not finite at position 4: its weights, "
            "or what was computed from them, hold NaN or infinity; the file has changed");
  EXPECT_EQ(broken->record().tokens.size(), 2u);
  EXPECT_EQ(sound->record().tokens.size(), 6u);
  EXPECT_EQ(sound->record().reason, FinishReason::kLength);
  EXPECT_EQ(core->Stats().not_finite, 1);
  EXPECT_EQ(core->Stats().free_blocks, core->Stats().total_blocks);
  EXPECT_TRUE(core->CheckIntegrity().ok());
}

TEST(EngineCoreTest, AWorkersNonsenseIsNotBelieved) {
  for (SimulatedFault fault : {SimulatedFault::kBadToken, SimulatedFault::kNoRows}) {
    SimulatedEngine engine = SimulatedEngine::Small();
    engine.scripts = {{.faults = {{1, fault}}, .delay_polls = 0, .fail_load = false}};
    auto core = engine.Make();
    auto stream = std::make_shared<RecordingStream>();
    core->Add(MakeRequest("a", 9, 20, stream), 1);
    const absl::Status status = core->Step();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_NE(status.message().find("rank 0 answered"), absl::string_view::npos) << status;
    EXPECT_TRUE(stream->record().tokens.empty());
    core->EndAll(status, FinishReason::kNone);
  }
}

// Two steps in flight, the second a later chunk of the first one's prompt.
TEST(EngineCoreTest, ARequestThatEndsInFlightLeavesNothingBehind) {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.config.pipeline_depth = 2;
  engine.config.scheduler.chunked_prefill_size = 8;
  auto core = engine.Make();
  auto cancelled = std::make_shared<RecordingStream>();
  auto other = std::make_shared<RecordingStream>();
  core->Add(MakeRequest("same", 40, 4, cancelled), 1);
  ASSERT_TRUE(core->Step().ok());  // settles tokens 0..7; 8..15 are in flight
  EXPECT_EQ(core->Stats().running, 1);
  EXPECT_FALSE(core->idle());
  core->Cancel(1);
  EXPECT_EQ(cancelled->record().reason, FinishReason::kCancelled);
  EXPECT_EQ(core->Stats().running, 0);
  EXPECT_EQ(core->Stats().free_blocks, core->Stats().total_blocks);
  EXPECT_FALSE(core->idle());  // a step is to be collected
  EXPECT_TRUE(core->CheckIntegrity().ok());
  // The next takes its slot and its blocks while that step is in flight.
  core->Add(MakeRequest("same", 40, 4, other), 2);
  while (!core->idle()) {
    ASSERT_TRUE(core->Step().ok());
    ASSERT_TRUE(core->CheckIntegrity().ok());
  }
  // Only what had settled was published.
  EXPECT_EQ(other->record().usage.cached_tokens, 8u);
  EXPECT_EQ(cancelled->record().num_ends, 1);

  SimulatedEngine alone = SimulatedEngine::Small();
  auto reference = std::make_shared<RecordingStream>();
  auto alone_core = alone.Make();
  alone_core->Add(MakeRequest("same", 40, 4, reference), 1);
  RunAll(*alone_core);
  EXPECT_EQ(other->record().tokens, reference->record().tokens);
}

}  // namespace
}  // namespace tandem::coordinator
