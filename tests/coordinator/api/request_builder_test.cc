#include "coordinator/api/request_builder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/coordinator/api/serving_model_for_test.h"

namespace tandem::coordinator {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

v1::GenerateRequest Sound() {
  v1::GenerateRequest request;
  request.set_text("hi");
  return request;
}

struct Hostile {
  std::string name;
  std::function<void(v1::GenerateRequest&)> spoil;
  std::vector<std::string> says;  // parts of the message
};

void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

Hostile OfSampling(const std::string& name, std::function<void(v1::SamplingParams&)> spoil,
                   std::vector<std::string> says) {
  return {name, [spoil](v1::GenerateRequest& request) { spoil(*request.mutable_sampling()); },
          std::move(says)};
}

std::vector<Hostile> HostilePrompts() {
  using R = v1::GenerateRequest;
  return {
      {"NoPrompt", [](R& r) { r.clear_prompt(); }, {"no prompt"}},
      {"EmptyText", [](R& r) { r.set_text(""); }, {"prompt is empty"}},
      {"EmptyIds", [](R& r) { r.mutable_token_ids(); }, {"prompt is empty"}},
      {"NotUtf8", [](R& r) { r.set_text("a\xff"); }, {"UTF-8"}},
      {"NegativeId", [](R& r) { r.mutable_token_ids()->add_ids(-1); }, {"-1", "0 to 263"}},
      {"IdTooLarge", [](R& r) { r.mutable_token_ids()->add_ids(264); }, {"264", "0 to 263"}},
      {"LongRequestId", [](R& r) { r.set_request_id(std::string(257, 'x')); }, {"257", "256"}},
  };
}

std::vector<Hostile> HostileSampling() {
  using S = v1::SamplingParams;
  return {
      OfSampling("NanTemperature", [](S& s) { s.set_temperature(kNan); }, {"temperature", "nan"}),
      OfSampling("InfiniteTemperature", [](S& s) { s.set_temperature(kInfinity); },
                 {"temperature", "inf"}),
      OfSampling("NegativeTemperature", [](S& s) { s.set_temperature(-0.5f); },
                 {"temperature", "-0.5"}),
      OfSampling("TopP2", [](S& s) { s.set_top_p(2); }, {"top_p is 2", "at most 1"}),
      OfSampling("TopP0", [](S& s) { s.set_top_p(0); }, {"top_p is 0", "above 0"}),
      OfSampling("NanTopP", [](S& s) { s.set_top_p(kNan); }, {"top_p", "nan"}),
      OfSampling("MinPAbove1", [](S& s) { s.set_min_p(1.5f); }, {"min_p is 1.5", "0 to 1"}),
      OfSampling("NegativeMinP", [](S& s) { s.set_min_p(-1); }, {"min_p is -1"}),
      OfSampling("NanMinP", [](S& s) { s.set_min_p(kNan); }, {"min_p", "nan"}),
      OfSampling("TopKBelowOff", [](S& s) { s.set_top_k(-2); }, {"top_k is -2"}),
      OfSampling("NoTokens", [](S& s) { s.set_max_tokens(0); }, {"max_tokens is 0"}),
      OfSampling("NegativeTokens", [](S& s) { s.set_max_tokens(-7); }, {"max_tokens is -7"}),
      OfSampling("NegativeMinTokens", [](S& s) { s.set_min_tokens(-1); }, {"min_tokens is -1"}),
      OfSampling("MinAboveMax",
                 [](S& s) {
                   s.set_max_tokens(3);
                   s.set_min_tokens(4);
                 },
                 {"min_tokens is 4", "max_tokens, 3"}),
      OfSampling("NegativeLogprobs", [](S& s) { s.set_logprobs(-1); },
                 {"logprobs is -1", "from 0 to 20"}),
      OfSampling("ManyLogprobs", [](S& s) { s.set_logprobs(21); },
                 {"sampling.logprobs is 21", "from 0 to 20"}),
      OfSampling("ManyPromptLogprobs", [](S& s) { s.set_prompt_logprobs(1000000); },
                 {"sampling.prompt_logprobs is 1000000", "from 0 to 20"}),
      OfSampling("ManyStops",
                 [](S& s) {
                   for (int i = 0; i < 1000; ++i) s.add_stop("stop");
                 },
                 {"1000", "64"}),
      OfSampling("EmptyStop", [](S& s) { s.add_stop(""); }, {"stop", "empty"}),
      OfSampling("ManyStopIds",
                 [](S& s) {
                   for (int i = 0; i < 257; ++i) s.add_stop_token_ids(1);
                 },
                 {"257", "256"}),
      OfSampling("StopIdOutOfRange", [](S& s) { s.add_stop_token_ids(264); },
                 {"stop_token_ids", "264"}),
  };
}

class HostileRequestTest : public testing::TestWithParam<Hostile> {};

TEST_P(HostileRequestTest, IsInvalidAndSaysWhy) {
  v1::GenerateRequest request = Sound();
  GetParam().spoil(request);
  const absl::Status status = BuildRequest(request, ServingModelForTest()).status();
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

TEST(RequestBuilder, TakesLogprobs) {
  v1::GenerateRequest proto = Sound();
  proto.mutable_sampling()->set_logprobs(20);
  proto.mutable_sampling()->set_prompt_logprobs(0);
  ServingModel model = ServingModelForTest();
  const Request request = BuildRequest(proto, model).value();
  EXPECT_EQ(request.sampling.logprobs, 20u);
  EXPECT_EQ(request.sampling.prompt_logprobs, 0u);
  // A vocabulary has no more than all its ids.
  proto.mutable_token_ids()->add_ids(1);
  model.vocab_size = 7;
  EXPECT_EQ(BuildRequest(proto, model)->sampling.logprobs, 7u);
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
  v1::GenerateRequest proto;
  proto.set_request_id("mine");
  proto.mutable_token_ids()->add_ids(263);
  v1::SamplingParams& sampling = *proto.mutable_sampling();
  sampling.set_temperature(0);
  sampling.set_top_p(0.5f);
  sampling.set_top_k(-1);
  sampling.set_max_tokens(9);
  sampling.set_min_tokens(9);
  sampling.set_seed(~uint64_t{0});
  sampling.set_ignore_eos(true);
  sampling.add_stop("end");
  sampling.add_stop_token_ids(7);
  sampling.add_stop_token_ids(3);
  sampling.add_stop_token_ids(7);
  const Request request = BuildRequest(proto, ServingModelForTest()).value();
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

TEST(RequestBuilder, SpecialTokensAreTextUnlessAsked) {
  const ServingModel model = ServingModelForTest();
  v1::GenerateRequest proto;
  proto.set_text("<|eos|>");
  proto.set_add_special_tokens(false);
  EXPECT_EQ(BuildRequest(proto, model)->prompt, Bytes("<|eos|>"));
  proto.set_parse_special_tokens(true);
  EXPECT_EQ(BuildRequest(proto, model)->prompt, std::vector<TokenId>{kEos});
}

// The engine refuses it with both numbers; here it must only not overflow.
TEST(RequestBuilder, PromptBeyondTheContextGoesOnToTheEngine) {
  v1::GenerateRequest proto;
  for (uint32_t i = 0; i < kMaxModelLen + 5; ++i) proto.mutable_token_ids()->add_ids(1);
  const Request request = BuildRequest(proto, ServingModelForTest()).value();
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
