#include "coordinator/api/request_builder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/coordinator/api/serving_model_for_test.h"

namespace tandem::coordinator {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

GenerateParams Sound() { return {.prompt = "hi"}; }

struct Hostile {
  std::string name;
  std::function<void(GenerateParams&)> spoil;
  std::vector<std::string> says;  // parts of the message
};

void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

using P = GenerateParams;

std::vector<Hostile> HostilePrompts() {
  return {
      {"NoPrompt", [](P& p) { p.prompt = std::monostate(); }, {"no prompt"}},
      {"NotUtf8", [](P& p) { p.prompt = "a\xff"; }, {"UTF-8"}},
      {"LongRequestId", [](P& p) { p.request_id = std::string(257, 'x'); }, {"257", "256"}},
      {"LongCacheSalt",
       [](P& p) { p.cache_salt = std::string(257, 'x'); },
       {"cache_salt has 257 bytes, at most 256"}},
      {"NothingLeft",
       [](P& p) { p.truncate_prompt_tokens = 0; },
       {"truncate_prompt_tokens is 0, it must be at least 1, or -1"}},
  };
}

std::vector<Hostile> HostileSampling() {
  return {
      {"NanTemperature", [](P& p) { p.temperature = kNan; }, {"sampling.temperature", "nan"}},
      {"InfiniteTemperature", [](P& p) { p.temperature = kInfinity; }, {"temperature", "inf"}},
      {"NegativeTemperature", [](P& p) { p.temperature = -0.5f; }, {"temperature", "-0.5"}},
      {"TopP2", [](P& p) { p.top_p = 2; }, {"sampling.top_p is 2", "at most 1"}},
      {"TopP0", [](P& p) { p.top_p = 0; }, {"top_p is 0", "above 0"}},
      {"NanTopP", [](P& p) { p.top_p = kNan; }, {"top_p", "nan"}},
      {"MinPAbove1", [](P& p) { p.min_p = 1.5f; }, {"sampling.min_p is 1.5", "0 to 1"}},
      {"NegativeMinP", [](P& p) { p.min_p = -1; }, {"min_p is -1"}},
      {"NanMinP", [](P& p) { p.min_p = kNan; }, {"min_p", "nan"}},
      {"TopKBelowOff", [](P& p) { p.top_k = -2; }, {"sampling.top_k is -2"}},
      {"NoTokens", [](P& p) { p.max_tokens = 0; }, {"sampling.max_tokens is 0"}},
      {"NegativeTokens", [](P& p) { p.max_tokens = -7; }, {"sampling.max_tokens is -7"}},
      {"NegativeMinTokens", [](P& p) { p.min_tokens = -1; }, {"sampling.min_tokens is -1"}},
      {"MinAboveMax",
       [](P& p) {
         p.max_tokens = 3;
         p.min_tokens = 4;
       },
       {"sampling.min_tokens is 4", "max_tokens, 3"}},
      {"NegativeLogprobs",
       [](P& p) { p.logprobs = -1; },
       {"sampling.logprobs is -1", "from 0 to 20"}},
      {"ManyLogprobs", [](P& p) { p.logprobs = 21; }, {"sampling.logprobs is 21", "from 0 to 20"}},
      {"ManyPromptLogprobs",
       [](P& p) { p.prompt_logprobs = 1000000; },
       {"sampling.prompt_logprobs is 1000000", "from 0 to 20"}},
      {"ManyStops", [](P& p) { p.stop.assign(1000, "stop"); }, {"1000", "64"}},
      {"EmptyStop", [](P& p) { p.stop = {""}; }, {"stop", "empty"}},
      {"FrequencyPenalty",
       [](P& p) { p.penalties.frequency = 2.5f; },
       {"sampling.frequency_penalty is 2.5, it must be from -2 to 2"}},
      {"PresencePenalty",
       [](P& p) { p.penalties.presence = kNan; },
       {"sampling.presence_penalty is nan"}},
      {"RepetitionPenalty",
       [](P& p) { p.penalties.repetition = 0; },
       {"sampling.repetition_penalty is 0, it must be from 0.01 to 100"}},
      {"PenaltyWindow",
       [](P& p) { p.penalties.window = 5000; },
       {"sampling.penalty_window is 5000, it must be from 0 to 4096, or -1"}},
      {"DryMultiplier",
       [](P& p) { p.penalties.dry_multiplier = -1; },
       {"sampling.dry_multiplier is -1"}},
      {"DryBase", [](P& p) { p.penalties.dry_base = 0.5f; }, {"sampling.dry_base is 0.5"}},
      {"DryLength",
       [](P& p) { p.penalties.dry_allowed_length = 0; },
       {"sampling.dry_allowed_length is 0, it must be at least 1"}},
      {"DryWindow",
       [](P& p) { p.penalties.dry_penalty_last_n = -2; },
       {"sampling.dry_penalty_last_n is -2"}},
      {"LogitBias",
       [](P& p) {
         p.logit_bias = {{3, 101.0f}};
       },
       {"sampling.logit_bias of id 3 is 101, it must be from -100 to 100"}},
      {"NanBias",
       [](P& p) {
         p.logit_bias = {{3, kNan}};
       },
       {"logit_bias of id 3 is nan"}},
      {"ManyBiases",
       [](P& p) { p.logit_bias.resize(1025); },
       {"sampling.logit_bias has 1025 entries, at most 1024"}},
      {"ManyBadWords",
       [](P& p) { p.bad_words.assign(257, "a"); },
       {"sampling.bad_words has 257 strings, at most 256"}},
      {"EmptyBadWord",
       [](P& p) {
         p.bad_words = {"a", ""};
       },
       {"sampling.bad_words[1] has 0 bytes, it must have 1 to 256"}},
      {"BlankBadWord", [](P& p) { p.bad_words = {"  "}; }, {"bad_words[0] holds spaces only"}},
      {"LongBreaker",
       [](P& p) { p.dry_sequence_breakers = {std::string(41, 'a')}; },
       {"sampling.dry_sequence_breakers[0] has 41 bytes, it must have 1 to 40"}},
      {"TypicalP", [](P& p) { p.typical_p = 0; }, {"sampling.typical_p is 0"}},
      {"XtcProbability", [](P& p) { p.xtc_probability = 2; }, {"sampling.xtc_probability is 2"}},
      {"XtcThreshold", [](P& p) { p.xtc_threshold = kNan; }, {"sampling.xtc_threshold is nan"}},
      {"NoContinuation", [](P& p) { p.n = 0; }, {"sampling.n is 0, it must be from 1 to 128"}},
      {"ManyContinuations", [](P& p) { p.n = 129; }, {"sampling.n is 129"}},
      {"NoJsonSchema",
       [](P& p) { p.constraint = {.kind = Constraint::Kind::kJsonSchema, .text = "{"}; },
       {"sampling.constraint: JSON schema: no JSON text at byte"}},
      {"UnsupportedSchema",
       [](P& p) {
         p.constraint = {.kind = Constraint::Kind::kJsonSchema,
                         .text = R"({"properties": {"a": {"not": {}}}})"};
       },
       {"sampling.constraint: JSON schema, #/properties/a: \"not\" is not supported"}},
      {"BadRegex",
       [](P& p) { p.constraint = {.kind = Constraint::Kind::kRegex, .text = "a("}; },
       {"sampling.constraint: regular expression, byte 1: a parenthesis that is not closed"}},
      {"NoChoices",
       [](P& p) { p.constraint.kind = Constraint::Kind::kChoice; },
       {"sampling.constraint: 0 choices, need 1 to 4096"}},
      {"BadWordsBesideAConstraint",
       [](P& p) {
         p.constraint.kind = Constraint::Kind::kJsonObject;
         p.bad_words = {"a"};
       },
       {"sampling.min_tokens and bad_words are not supported beside a constraint"}},
      {"ManyStopIds", [](P& p) { p.stop_token_ids.assign(257, 1); }, {"257", "256"}},
      {"ThoughtsBeforeNoForm",
       [](P& p) { p.constraint.reasoning = {.end = "a"}; },
       {"sampling.reasoning", "there is no constraint"}},
      {"ThoughtsWithoutAnEnd",
       [](P& p) {
         p.constraint = {.kind = Constraint::Kind::kJsonObject, .reasoning = grammar::Reasoning()};
       },
       {"reasoning.end is empty"}},
  };
}

class HostileRequestTest : public testing::TestWithParam<Hostile> {};

TEST_P(HostileRequestTest, IsInvalidWithTheReason) {
  GenerateParams params = Sound();
  GetParam().spoil(params);
  const absl::Status status = BuildRequest(params, ServingModelForTest()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  for (const std::string& part : GetParam().says) {
    EXPECT_NE(std::string(status.message()).find(part), std::string::npos)
        << status.message() << " does not say " << part;
  }
}

std::string NameOf(const testing::TestParamInfo<Hostile>& param) { return param.param.name; }

INSTANTIATE_TEST_SUITE_P(Prompt, HostileRequestTest, testing::ValuesIn(HostilePrompts()), NameOf);
INSTANTIATE_TEST_SUITE_P(Sampling, HostileRequestTest, testing::ValuesIn(HostileSampling()),
                         NameOf);

TEST(RequestBuilder, NoTextIsNoPrompt) {
  GenerateParams params = Sound();
  params.prompt = "";
  EXPECT_TRUE(BuildRequest(params, ServingModelForTest())->prompt.empty());  // without BOS
}

TEST(RequestBuilder, ClampsMaxTokensIfTheServerOrTheRequestSaysSo) {
  ServingModel model = ServingModelForTest();
  GenerateParams params = Sound();  // three tokens
  params.max_tokens = 1000;
  EXPECT_EQ(BuildRequest(params, model)->sampling.max_tokens, 1000u) << "for the engine to refuse";
  params.clamp_max_tokens = true;
  EXPECT_EQ(BuildRequest(params, model)->sampling.max_tokens, kMaxModelLen - 3);
  params.clamp_max_tokens.reset();
  model.clamp_max_tokens = true;
  EXPECT_EQ(BuildRequest(params, model)->sampling.max_tokens, kMaxModelLen - 3);
  params.max_tokens = 5;
  EXPECT_EQ(BuildRequest(params, model)->sampling.max_tokens, 5u);
  params.max_tokens = 1000;
  params.clamp_max_tokens = false;
  EXPECT_EQ(BuildRequest(params, model)->sampling.max_tokens, 1000u);
}

TEST(RequestBuilder, FillsInTheDefaults) {
  const Request request = BuildRequest(Sound(), ServingModelForTest()).value();
  EXPECT_EQ(request.prompt, (std::vector<TokenId>{kBos, 'h', 'i'}));
  EXPECT_EQ(request.sampling.temperature, 1);
  EXPECT_EQ(request.sampling.top_p, 1);
  EXPECT_EQ(request.sampling.min_p, 0);
  EXPECT_EQ(request.sampling.top_k, 0);
  EXPECT_EQ(request.sampling.max_tokens, kMaxModelLen - 3);
  EXPECT_EQ(request.sampling.min_tokens, 0u);
  EXPECT_EQ(request.sampling.end_ids, std::vector<TokenId>{kEos});
  EXPECT_FALSE(request.sampling.logprobs.has_value());
  EXPECT_FALSE(request.sampling.prompt_logprobs.has_value());
}

TEST(RequestBuilder, KeepsTheEndOfAPromptThatIsTooLong) {
  GenerateParams params = Sound();
  params.prompt = Bytes("abcdef");
  params.truncate_prompt_tokens = 2;
  EXPECT_EQ(BuildRequest(params, ServingModelForTest())->prompt, Bytes("ef"));
  params.truncate_prompt_tokens = 6;
  EXPECT_EQ(BuildRequest(params, ServingModelForTest())->prompt, Bytes("abcdef"));
  params.prompt = std::vector<TokenId>(kMaxModelLen + 5, 'a');
  params.truncate_prompt_tokens = -1;
  EXPECT_EQ(BuildRequest(params, ServingModelForTest())->prompt.size(), kMaxModelLen - 1);
}

TEST(RequestBuilder, AdaptersGoByTheirNumber) {
  ServingModel model = ServingModelForTest();
  const auto found = [&](const std::string& name) {
    GenerateParams params = Sound();
    params.adapter = name;
    return BuildRequest(params, model);
  };
  EXPECT_EQ(found("")->adapter, 0u);
  EXPECT_EQ(found("a").status(),
            absl::NotFoundError("adapter 'a' is not loaded, no adapter is (--lora-modules)"));
  model.adapters = {"a", "b"};
  EXPECT_EQ(found("")->adapter, 0u);
  EXPECT_EQ(found("a")->adapter, 1u);
  EXPECT_EQ(found("b")->adapter, 2u);
  EXPECT_EQ(Continuation(*found("b"), 1).adapter, 2u);
  EXPECT_EQ(found("A").status(), absl::NotFoundError("adapter 'A' is not loaded, only 'a', 'b'"));
  model.adapters = std::vector<std::string>(9, "x");
  EXPECT_TRUE(std::string(found("A").status().message()).ends_with("'x', ..."));
}

TEST(RequestBuilder, ContinuationsDifferInIdAndSeedAlone) {
  GenerateParams params = Sound();
  params.request_id = "a";
  params.cache_salt = "salt";
  params.seed = 7;
  params.prompt_logprobs = 1;
  const Request first = BuildRequest(params, ServingModelForTest()).value();
  EXPECT_EQ(first.cache_salt, "salt");
  const Request zero = Continuation(first, 0);
  EXPECT_EQ(zero.id, "a");
  EXPECT_EQ(zero.sampling.seed, 7u);
  EXPECT_EQ(zero.sampling.prompt_logprobs, 1u);
  std::set<uint64_t> seeds = {7, 8};
  for (uint32_t index = 1; index < 128; ++index) {
    const Request other = Continuation(first, index);
    EXPECT_EQ(other.id, "a#" + std::to_string(index));
    EXPECT_EQ(other.prompt, first.prompt);
    EXPECT_EQ(other.cache_salt, "salt");
    EXPECT_FALSE(other.sampling.prompt_logprobs.has_value());
    seeds.insert(other.sampling.seed);
    Request next = first;
    next.sampling.seed = 8;
    seeds.insert(Continuation(next, index).sampling.seed);
  }
  EXPECT_EQ(seeds.size(), 2u + 2 * 127);
}

TEST(RequestBuilder, TakesLogprobs) {
  GenerateParams params = Sound();
  params.logprobs = 20;
  params.prompt_logprobs = 0;
  ServingModel model = ServingModelForTest();
  const Request request = BuildRequest(params, model).value();
  EXPECT_EQ(request.sampling.logprobs, 20u);
  EXPECT_EQ(request.sampling.prompt_logprobs, 0u);
  // A vocabulary has no more than all its ids.
  params.prompt = std::vector<TokenId>{1};
  model.vocab_size = 7;
  EXPECT_EQ(BuildRequest(params, model)->sampling.logprobs, 7u);
}

TEST(RequestBuilder, DrawsIdAndSeedAnewEachTime) {
  const ServingModel model = ServingModelForTest();
  const Request first = BuildRequest(Sound(), model).value();
  const Request second = BuildRequest(Sound(), model).value();
  EXPECT_FALSE(first.id.empty());
  EXPECT_NE(first.id, second.id);
  EXPECT_NE(first.sampling.seed, second.sampling.seed);
}

TEST(RequestBuilder, TakesWhatIsGiven) {
  const GenerateParams params{.request_id = "mine",
                              .prompt = std::vector<TokenId>{263},
                              .temperature = 0,
                              .top_p = 0.5f,
                              .top_k = -1,
                              .max_tokens = 9,
                              .min_tokens = 9,
                              .seed = ~uint64_t{0},
                              .ignore_eos = true,
                              .stop = {"end"},
                              .stop_token_ids = {7, 3, 7}};
  const Request request = BuildRequest(params, ServingModelForTest()).value();
  EXPECT_EQ(request.id, "mine");
  EXPECT_EQ(request.prompt, std::vector<TokenId>{263});
  EXPECT_EQ(request.sampling.temperature, 0);
  EXPECT_EQ(request.sampling.top_p, 0.5f);
  EXPECT_EQ(request.sampling.top_k, 0);
  EXPECT_EQ(request.sampling.max_tokens, 9u);
  EXPECT_EQ(request.sampling.min_tokens, 9u);
  EXPECT_EQ(request.sampling.seed, ~uint64_t{0});
  EXPECT_EQ(request.sampling.stop, std::vector<std::string>{"end"});
  EXPECT_EQ(request.sampling.end_ids, (std::vector<TokenId>{3, 7}));
}

TEST(RequestBuilder, BadWordsAreBannedWithAndWithoutASpaceIfThatIsAnotherFirstId) {
  GenerateParams params = Sound();
  params.bad_words = {" ab", "c"};
  // Of a vocabulary of bytes a word has one more id with a space, as vLLM has it: only the plain
  // one.
  EXPECT_EQ(BuildRequest(params, ServingModelForTest())->sampling.banned_sequences,
            (std::vector<std::vector<TokenId>>{Bytes("ab"), Bytes("c")}));
  // Ids that the head lacks are never generated.
  ServingModel narrow = ServingModelForTest();
  narrow.vocab_size = 'c';
  params.prompt = std::vector<TokenId>{1};
  EXPECT_EQ(BuildRequest(params, narrow)->sampling.banned_sequences,
            (std::vector<std::vector<TokenId>>{Bytes("ab")}));
}

TEST(RequestBuilder, BreakersAreTheIdsWithTheirText) {
  GenerateParams params = Sound();
  const auto breakers = [&] {
    return BuildRequest(params, ServingModelForTest())->sampling.dry_breakers;
  };
  EXPECT_TRUE(breakers().empty());  // DRY is off
  params.penalties.dry_multiplier = 0.5f;
  EXPECT_EQ(breakers(), Bytes("\n\"*:"));
  params.dry_sequence_breakers = {"z", "y"};
  EXPECT_EQ(breakers(), Bytes("yz"));
  params.dry_sequence_breakers = {"none"};
  EXPECT_TRUE(breakers().empty());
}

TEST(RequestBuilder, BiasesAreSorted) {
  GenerateParams params = Sound();
  params.logit_bias = {{9, 1.0f}, {2, -100.0f}};
  EXPECT_EQ(BuildRequest(params, ServingModelForTest())->sampling.logit_bias,
            (std::vector<std::pair<TokenId, float>>{{2, -100.0f}, {9, 1.0f}}));
}

TEST(RequestBuilder, SpecialTokensAreTextUnlessAsked) {
  const ServingModel model = ServingModelForTest();
  GenerateParams params{.prompt = "<|eos|>", .encode = {.add_special = false}};
  EXPECT_EQ(BuildRequest(params, model)->prompt, Bytes("<|eos|>"));
  params.encode.parse_special = true;
  EXPECT_EQ(BuildRequest(params, model)->prompt, std::vector<TokenId>{kEos});
}

// The engine refuses it with both numbers; here it must only not overflow.
TEST(RequestBuilder, PromptBeyondTheContextIsLeftToTheEngine) {
  const GenerateParams params{.prompt = std::vector<TokenId>(kMaxModelLen + 5, 1)};
  const Request request = BuildRequest(params, ServingModelForTest()).value();
  EXPECT_EQ(request.prompt.size(), kMaxModelLen + 5);
  EXPECT_EQ(request.sampling.max_tokens, 1u);
}

// A head narrower than its vocabulary never draws the ids beyond it.
TEST(RequestBuilder, EndIdsBeyondTheHeadAreLeftOut) {
  ServingModel model = ServingModelForTest();
  model.vocab_size = kEos;
  const Request request = BuildRequest(Sound(), model).value();
  EXPECT_TRUE(request.sampling.end_ids.empty());
}

}  // namespace
}  // namespace tandem::coordinator
