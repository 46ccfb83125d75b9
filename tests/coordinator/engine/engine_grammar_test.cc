// Answers that have a form: every token keeps to it, whatever runs beside it, and losing workers or
// blocks changes nothing.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/engine/apply.h"
#include "tests/coordinator/engine/engine_fixture.h"
#include "tests/coordinator/grammar/bracket_grammar.h"
#include "tests/coordinator/grammar/reference.h"

namespace tandem::coordinator {
namespace {

using Record = RecordingStream::Record;

constexpr TokenId kEnd = 96;

SimulatedEngine Engine() {
  SimulatedEngine engine = SimulatedEngine::Small();
  engine.ranks = 1;
  engine.config.scheduler.max_model_len = 200;
  engine.config.kv_cache.groups[0].num_blocks = 400;
  return engine;
}

// Every second one has a form; some of those can be sampled, biased, ended by an id.
std::vector<Request> Requests() {
  std::vector<Request> requests;
  const auto grammar = grammar::BracketGrammar(SimulatedModel().vocab_size);
  for (uint32_t i = 0; i < 16; ++i) {
    requests.push_back(MakeRequest("r" + std::to_string(i), 1 + 3 * i, 30 + 5 * i, nullptr));
    Sampling& sampling = requests.back().sampling;
    sampling.temperature = i % 4 < 2 ? 0.0f : 0.8f;
    sampling.seed = i;
    if (i % 2 == 0) sampling.grammar = grammar;
    if (i % 8 == 4) sampling.penalties.frequency = 0.5f;
    if (i % 3 == 0) sampling.end_ids = {kEnd};
    if (i % 5 == 0) sampling.logprobs = 1;
  }
  return requests;
}

std::vector<Record> RunAll(const SimulatedEngine& engine, EngineStats* stats = nullptr) {
  auto core = engine.Make();
  std::vector<std::shared_ptr<RecordingStream>> streams;
  for (Request& request : Requests()) {
    streams.push_back(std::make_shared<RecordingStream>());
    request.stream = streams.back();
    core->Add(std::move(request), streams.size());
  }
  RunAll(*core);
  if (stats != nullptr) *stats = core->Stats();
  std::vector<Record> records;
  for (const auto& stream : streams) records.push_back(stream->record());
  return records;
}

std::string TextOf(const Record& record) {
  std::string text;
  for (const TokenId id : record.tokens) {
    if (id != kEnd) text += grammar::TextOfId(id);
  }
  return text;
}

void ExpectSame(const std::vector<Record>& found, const std::vector<Record>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].tokens, wanted[i].tokens) << i;
    EXPECT_EQ(found[i].reason, wanted[i].reason) << i;
  }
}

TEST(EngineGrammarTest, AnswersThatEndAreOfTheirForm) {
  const grammar::Grammar brackets = {grammar::BracketRules()};
  const grammar::Reference reference(brackets);
  int ended = 0;
  const std::vector<Record> records = RunAll(Engine());
  for (size_t i = 0; i < records.size(); i += 2) {
    EXPECT_EQ(records[i].code, absl::StatusCode::kOk) << records[i].message;
    if (records[i].reason != FinishReason::kStop) continue;
    EXPECT_TRUE(reference.Matches(TextOf(records[i]))) << TextOf(records[i]);
    ++ended;
  }
  EXPECT_GE(ended, 4);
}

TEST(EngineGrammarTest, TheSameTokensAtEveryDepthChunkAndNumberOfBlocks) {
  const std::vector<Record> wanted = RunAll(Engine());
  for (const uint32_t depth : {1u, 2u}) {
    for (const uint32_t chunk : {1u, 7u, 32u}) {
      for (const uint32_t blocks : {60u, 400u}) {
        SCOPED_TRACE(testing::Message()
                     << depth << " steps, chunks of " << chunk << ", " << blocks);
        SimulatedEngine engine = Engine();
        engine.config.pipeline_depth = depth;
        engine.config.scheduler.chunked_prefill_size = chunk;
        engine.config.kv_cache.groups[0].num_blocks = blocks;
        EngineStats stats;
        ExpectSame(RunAll(engine, &stats), wanted);
        EXPECT_EQ(stats.preemptions > 0, blocks == 60);
      }
    }
  }
}

TEST(EngineGrammarTest, NothingIsGuessedOfAnAnswerThatHasAForm) {
  const std::vector<Record> wanted = RunAll(Engine());
  SimulatedEngine engine = Engine();
  engine.config.max_draft_tokens = 4;
  const std::vector<Record> found = RunAll(engine);
  ExpectSame(found, wanted);
  for (size_t i = 0; i < found.size(); i += 2) EXPECT_EQ(found[i].usage.draft_tokens, 0u) << i;
}

TEST(EngineGrammarTest, ALostWorkerChangesNothing) {
  const std::vector<Record> wanted = RunAll(Engine());
  SimulatedEngine engine = Engine();
  auto core = engine.Make();
  std::vector<std::shared_ptr<RecordingStream>> streams;
  for (Request& request : Requests()) {
    streams.push_back(std::make_shared<RecordingStream>());
    request.stream = streams.back();
    core->Add(std::move(request), streams.size());
  }
  for (int step = 0; step < 12; ++step) ExpectStep(*core);
  core->Rewind(absl::UnavailableError("a worker is gone"));
  core->Resume(engine.MakeWorkers(Epoch{9}), Duration{});
  RunAll(*core);
  std::vector<Record> found;
  for (const auto& stream : streams) found.push_back(stream->record());
  ExpectSame(found, wanted);
}

// The client's form is at fault, and no logits are.
TEST(EngineGrammarTest, AnAnswerThatCannotGoOnEndsAsItsFormSays) {
  const SimulatedEngine engine = Engine();
  auto core = engine.Make();
  const auto stream = std::make_shared<RecordingStream>();
  Request request = MakeRequest("r", 3, 9, stream);
  request.sampling.grammar =
      grammar::GrammarOfTexts({grammar::Text("[x")}, SimulatedModel().vocab_size);
  core->Add(std::move(request), 1);
  RunAll(*core);
  EXPECT_EQ(stream->record().code, absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(stream->record().message.starts_with("no token can follow 1 of an answer"))
      << stream->record().message;
  EXPECT_EQ(stream->record().tokens.size(), 1u);
  EXPECT_EQ(core->Stats().not_finite, 0);
}

// A worker that draws something else is found out.
TEST(EngineGrammarTest, ATokenThatIsNotAllowedEndsTheRequest) {
  Request request = MakeRequest("r", 3, 9, nullptr);
  request.sampling.grammar = grammar::BracketGrammar(SimulatedModel().vocab_size);
  Generation generation(1, std::move(request));
  EXPECT_TRUE(step::Contains(generation.Allowed(), 0));
  EXPECT_FALSE(step::Contains(generation.Allowed(), 1));
  const std::vector<step::RowRequest> rows = {{.token = 2}};
  const std::vector<step::RowResult> results = {{.tokens = {1}, .logprobs = {}, .logits = {}}};
  const StreamUpdate update = ApplyRows(rows, results, 100, generation);
  EXPECT_EQ(update.status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(update.status.message(),
            "token 0 of the answer, id 1, is not of the form that the request asks for");
}

// A letter is a whole text; inside a list the end is not allowed.
TEST(EngineGrammarTest, EndsWhereNothingMayFollow) {
  const auto grammar = grammar::BracketGrammar(SimulatedModel().vocab_size);
  const auto after = [&](std::vector<TokenId> tokens, uint32_t max_tokens) {
    Request request = MakeRequest("r", 3, max_tokens, nullptr);
    request.sampling.grammar = grammar;
    request.sampling.end_ids = {kEnd};
    Generation generation(1, std::move(request));
    StreamUpdate update;
    for (const TokenId token : tokens) {
      const std::vector<step::RowRequest> rows = {{.token = 2}};
      const std::vector<step::RowResult> results = {
          {.tokens = {token}, .logprobs = {}, .logits = {}}};
      update = ApplyRows(rows, results, 100, generation);
      EXPECT_FALSE(step::Contains(generation.Allowed(), kEnd) && generation.next.has_tokens);
    }
    EXPECT_TRUE(update.status.ok()) << update.status;
    return update.reason;
  };
  EXPECT_EQ(after({3}, 9), FinishReason::kStop);
  EXPECT_EQ(after({3}, 1), FinishReason::kStop) << "it is complete";
  EXPECT_EQ(after({0, 3}, 9), FinishReason::kNone);
  EXPECT_EQ(after({0, 3}, 2), FinishReason::kLength);
  EXPECT_EQ(after({0, 5, 9}, 9), FinishReason::kStop);
}

}  // namespace
}  // namespace tandem::coordinator
