#include "coordinator/engine/request_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "tests/coordinator/engine/engine_fixture.h"
#include "tests/coordinator/grammar/bracket_grammar.h"

namespace tandem::coordinator {
namespace {

// Every way to ask for what would make a step fail, and a word of the refusal.
struct Case {
  const char* name;
  std::function<void(Request&)> spoil;
  const char* message;
};

const Case kCases[] = {
    {"NoId", [](Request& r) { r.id.clear(); }, "request id is empty"},
    {"NoStream", [](Request& r) { r.stream = nullptr; }, "has no stream"},
    {"EmptyPrompt", [](Request& r) { r.prompt.clear(); }, "prompt is empty"},
    {"PromptTooLong", [](Request& r) { r.prompt.resize(65); }, "prompt of 65 tokens"},
    {"PriorityTooHigh", [](Request& r) { r.priority = 101; },
     "priority is 101, it must be from -100 to 100"},
    {"NoSuchAdapter", [](Request& r) { r.adapter = 1; }, "adapter is number 1, there are 0"},
    {"PriorityTooLow", [](Request& r) { r.priority = -101; }, "priority is -101"},
    {"NoTokens", [](Request& r) { r.sampling.max_tokens = 0; },
     "sampling.max_tokens is 0, it must be at least 1"},
    {"HugeMaxTokens", [](Request& r) { r.sampling.max_tokens = UINT32_MAX; },
     "max_tokens 4294967295 exceed the context of 64"},
    {"IdAboveVocabulary", [](Request& r) { r.prompt[1] = 97; },
     "prompt token 1 is id 97, the vocabulary has 97"},
    {"NegativeId", [](Request& r) { r.prompt[0] = -1; }, "prompt token 0 is id -1"},
    {"StopIdAboveVocabulary", [](Request& r) { r.sampling.end_ids = {97}; }, "stop token 0"},
    {"UnsortedStopIds",
     [](Request& r) {
       r.sampling.end_ids = {9, 3};
     },
     "sorted"},
    {"ManyEndIds", [](Request& r) { r.sampling.end_ids.assign(1025, 5); },
     "1025 ids end the generation, at most 1024 may"},
    {"NanTemperature", [](Request& r) { r.sampling.temperature = std::nanf(""); }, "temperature"},
    {"InfiniteTemperature", [](Request& r) { r.sampling.temperature = INFINITY; }, "temperature"},
    {"NegativeTemperature", [](Request& r) { r.sampling.temperature = -1; }, "temperature"},
    {"TopPAboveOne", [](Request& r) { r.sampling.top_p = 2; },
     "sampling.top_p is 2, it must be above 0 and at most 1"},
    {"TopPZero", [](Request& r) { r.sampling.top_p = 0; }, "top_p"},
    {"NanMinP", [](Request& r) { r.sampling.min_p = std::nanf(""); }, "min_p"},
    {"ManyLogprobs", [](Request& r) { r.sampling.logprobs = 21; },
     "sampling.logprobs is 21, it must be from 0 to 20"},
    {"ManyPromptLogprobs", [](Request& r) { r.sampling.prompt_logprobs = 21; },
     "sampling.prompt_logprobs is 21, it must be from 0 to 20"},
    {"MinTokensAboveMaxTokens", [](Request& r) { r.sampling.min_tokens = 9; },
     "sampling.min_tokens is 9, it must be from 0 to max_tokens, 8"},
    {"MinTokensBesideAForm",
     [](Request& r) {
       r.sampling.grammar = grammar::BracketGrammar(97);
       r.sampling.min_tokens = 1;
     },
     "sampling.min_tokens and bad_words are not supported beside a constraint"},
    {"BadWordsBesideAForm",
     [](Request& r) {
       r.sampling.grammar = grammar::BracketGrammar(97);
       r.sampling.banned_sequences = {{1}};
     },
     "not supported beside a constraint"},
    {"FormOverAnotherVocabulary",
     [](Request& r) { r.sampling.grammar = grammar::BracketGrammar(128 + 97); },
     "the form of the answer is over another vocabulary"},
    {"BiasAboveVocabulary",
     [](Request& r) {
       r.sampling.logit_bias = {{97, 1.0f}};
     },
     "logit_bias entry 0 is id 97, the vocabulary has 97"},
    {"BiasTwice",
     [](Request& r) {
       r.sampling.logit_bias = {{5, 1.0f}, {5, 2.0f}};
     },
     "biased ids must rise"},
    {"BannedAboveVocabulary",
     [](Request& r) {
       r.sampling.banned_sequences = {{3, 97}};
     },
     "banned token 1 is id 97"},
    {"BannedNothing", [](Request& r) { r.sampling.banned_sequences = {{}}; }, "is empty"},
    {"BannedMany", [](Request& r) { r.sampling.banned_sequences.assign(577, {1}); },
     "577 sequences of ids are banned, at most 576 may be"},
    {"UnsortedBreakers",
     [](Request& r) {
       r.sampling.dry_breakers = {9, 3};
     },
     "sorted"},
    {"RepetitionZero", [](Request& r) { r.sampling.penalties.repetition = 0; },
     "sampling.repetition_penalty is 0"},
    {"TargetWithNothingBefore",
     [](Request& r) {
       r.sampling.max_tokens = 0;
       r.targets.assign(9, 1);
     },
     "9 with a prompt of 8 tokens"},
    {"TargetAboveVocabulary",
     [](Request& r) {
       r.sampling.max_tokens = 0;
       r.targets = {1, 97};
     },
     "token to score 1 is id 97, the vocabulary has 97"},
    {"TargetsAndTokens", [](Request& r) { r.targets = {1}; },
     "a request scores, embeds or generates: one of them"},
    {"EmbeddingAndTokens", [](Request& r) { r.pooling = Pooling::kMean; },
     "a request scores, embeds or generates: one of them"},
    {"EmbeddingAndTargets",
     [](Request& r) {
       r.sampling.max_tokens = 0;
       r.pooling = Pooling::kMean;
       r.targets = {1};
     },
     "a request scores ids or embeds its prompt, not both"},
    {"ScoredPromptTooLong",
     [](Request& r) {
       r.sampling.max_tokens = 0;
       r.targets = {1};
       r.prompt.assign(65, 1);
     },
     "prompt of 65 tokens exceeds the context of 64 tokens (--max-model-len); a prompt may have at "
     "most 64 tokens"},
    {"NegativeTopK", [](Request& r) { r.sampling.top_k = -2; }, "top_k"},
};

class RequestCheckTest : public testing::TestWithParam<Case> {};

TEST_P(RequestCheckTest, RefusesInOneClearLine) {
  const RequestCheck check(SimulatedEngine::Small().config);
  Request request = MakeRequest("a", 8, 8, std::make_shared<RecordingStream>());
  ASSERT_TRUE(check.Check(request).ok()) << check.Check(request);
  GetParam().spoil(request);
  const absl::Status status = check.Check(request);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find(GetParam().message), absl::string_view::npos) << status;
}

TEST(RequestCheck, AVocabularyHasNoMoreLogprobsThanIds) {
  EngineConfig config = SimulatedEngine::Small().config;
  config.vocab_size = 7;
  Request request = MakeRequest("a", 1, 8, std::make_shared<RecordingStream>());
  request.prompt = {1};
  request.sampling.logprobs = 7;
  EXPECT_TRUE(RequestCheck(config).Check(request).ok());
  request.sampling.logprobs = 8;
  EXPECT_EQ(RequestCheck(config).Check(request).message(),
            "sampling.logprobs is 8, it must be from 0 to 7");
}

INSTANTIATE_TEST_SUITE_P(All, RequestCheckTest, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tandem::coordinator
