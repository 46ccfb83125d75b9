#include "client/prompt_file.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace tandem::client {
namespace {

v1::GenerateRequest Defaults() {
  v1::GenerateRequest defaults;
  defaults.mutable_sampling()->set_temperature(0.5f);
  defaults.mutable_sampling()->set_max_tokens(7);
  defaults.mutable_sampling()->add_stop("default");
  return defaults;
}

TEST(PromptLine, FieldsGoBeforeTheFlags) {
  const auto request =
      ParsePromptLine(R"({"prompt": "hi", "max_tokens": 3, "stop": ["a", "b"]})", Defaults());
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->text(), "hi");
  EXPECT_EQ(request->sampling().temperature(), 0.5f);
  EXPECT_EQ(request->sampling().max_tokens(), 3);
  ASSERT_EQ(request->sampling().stop_size(), 2);
  EXPECT_EQ(request->sampling().stop(1), "b");
}

TEST(PromptLine, TakesEveryField) {
  const auto request = ParsePromptLine(
      R"({"prompt_token_ids": [1, 2], "request_id": "r", "priority": -4, "temperature": 0, "top_p": 0.25,
          "top_k": -1, "min_p": 0.125, "max_tokens": 5, "min_tokens": 4,
          "seed": 18446744073709551615, "ignore_eos": true, "stop": "x", "stop_token_ids": [9],
          "logprobs": 2, "prompt_logprobs": 0,
          "add_special_tokens": false, "parse_special_tokens": true})",
      Defaults());
  ASSERT_TRUE(request.ok()) << request.status();
  v1::GenerateRequest expected;
  expected.set_request_id("r");
  expected.set_priority(-4);
  expected.mutable_token_ids()->add_ids(1);
  expected.mutable_token_ids()->add_ids(2);
  v1::SamplingParams& sampling = *expected.mutable_sampling();
  sampling.set_temperature(0);
  sampling.set_top_p(0.25f);
  sampling.set_top_k(-1);
  sampling.set_min_p(0.125f);
  sampling.set_max_tokens(5);
  sampling.set_min_tokens(4);
  sampling.set_seed(18446744073709551615u);
  sampling.set_ignore_eos(true);
  sampling.add_stop("x");
  sampling.add_stop_token_ids(9);
  sampling.set_logprobs(2);
  sampling.set_prompt_logprobs(0);
  expected.set_add_special_tokens(false);
  expected.set_parse_special_tokens(true);
  EXPECT_EQ(request->SerializeAsString(), expected.SerializeAsString());
}

// A schema's properties stay in their order.
TEST(PromptLine, TakesForms) {
  const auto sampling = [](const std::string& field) {
    return ParsePromptLine(R"({"prompt": "", )" + field + "}", v1::GenerateRequest())
        .value()
        .sampling();
  };
  EXPECT_EQ(sampling(R"("json_schema": {"properties": {"b": {}, "a": {}}})").json_schema(),
            R"({"properties":{"b":{},"a":{}}})");
  EXPECT_EQ(sampling(R"("json_schema": "{}")").json_schema(), "{}");
  EXPECT_TRUE(sampling(R"("json_object": true)").json_object());
  EXPECT_EQ(sampling(R"("regex": "a*")").regex(), "a*");
  EXPECT_EQ(sampling(R"("choice": ["a", "b"])").choice().texts_size(), 2);
  EXPECT_EQ(sampling(R"("grammar": "root ::= [a]")").grammar(), "root ::= [a]");
  const v1::Reasoning reasoning =
      sampling(R"("regex": "a", "reasoning": {"start": "<", "end": ">", "answer_start": ":"})")
          .reasoning();
  EXPECT_EQ(reasoning.start() + reasoning.end() + reasoning.answer_start(), "<>:");
  for (const char* field :
       {R"("reasoning": "</think>")", R"("reasoning": {"until": "a"})",
        R"("reasoning": {"end": 1})", R"("json_schema": 1)", R"("regex": 1)", R"("grammar": 1)",
        R"("choice": "a")", R"("choice": [1])", R"("json_object": 1)"}) {
    const auto request =
        ParsePromptLine(std::string(R"({"prompt": "", )") + field + "}", v1::GenerateRequest());
    EXPECT_FALSE(request.ok()) << field;
  }
}

TEST(PromptLine, TakesEverySampler) {
  const auto request = ParsePromptLine(
      R"({"prompt": "", "frequency_penalty": 0.5, "presence_penalty": 0.25,
          "repetition_penalty": 1.5, "penalty_window": 64, "logit_bias": {"7": -3, "9": 1.5},
          "bad_words": ["a", "b"], "typical_p": 0.75, "include_stop": true,
          "xtc_probability": 0.125, "xtc_threshold": 0.25, "dry_multiplier": 0.5, "dry_base": 2,
          "dry_allowed_length": 3, "dry_penalty_last_n": 99, "dry_sequence_breakers": "|"})",
      v1::GenerateRequest());
  ASSERT_TRUE(request.ok()) << request.status();
  v1::SamplingParams expected;
  expected.set_frequency_penalty(0.5f);
  expected.set_presence_penalty(0.25f);
  expected.set_repetition_penalty(1.5f);
  expected.set_penalty_window(64);
  (*expected.mutable_logit_bias())[7] = -3;
  (*expected.mutable_logit_bias())[9] = 1.5f;
  expected.add_bad_words("a");
  expected.add_bad_words("b");
  expected.set_typical_p(0.75f);
  expected.set_include_stop(true);
  expected.set_xtc_probability(0.125f);
  expected.set_xtc_threshold(0.25f);
  expected.set_dry_multiplier(0.5f);
  expected.set_dry_base(2);
  expected.set_dry_allowed_length(3);
  expected.set_dry_penalty_last_n(99);
  expected.add_dry_sequence_breakers("|");
  EXPECT_EQ(request->sampling().DebugString(), expected.DebugString());
}

TEST(PromptLine, BiasesAreAnObjectOfIds) {
  for (const char* wrong : {R"([7])", R"({"x": 1})", R"({"-1": 1})", R"({"7": "1"})"}) {
    const auto status =
        ParsePromptLine(R"({"prompt": "", "logit_bias": )" + std::string(wrong) + "}",
                        v1::GenerateRequest())
            .status();
    EXPECT_EQ(std::string(status.message())
                  .rfind("'logit_bias' must be an object of token ids and numbers, found ", 0),
              0u)
        << status;
  }
}

TEST(PromptLine, NothingIsSetThatWasNotGiven) {
  const auto request = ParsePromptLine(R"({"prompt": ""})", v1::GenerateRequest());
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->prompt_case(), v1::GenerateRequest::kText);
  EXPECT_FALSE(request->has_add_special_tokens());
  EXPECT_EQ(request->sampling().ByteSizeLong(), 0u);
}

struct BadLine {
  std::string name;
  std::string line;
  std::string says;
};

void PrintTo(const BadLine& bad, std::ostream* out) { *out << bad.line; }

class BadLineTest : public testing::TestWithParam<BadLine> {};

TEST_P(BadLineTest, IsRefusedWithTheReason) {
  const absl::Status status = ParsePromptLine(GetParam().line, Defaults()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(std::string(status.message()).find(GetParam().says), std::string::npos) << status;
}

INSTANTIATE_TEST_SUITE_P(
    Lines, BadLineTest,
    testing::Values(
        BadLine{"NotJson", "{'prompt': 1}", "not a JSON object"},
        BadLine{"Truncated", R"({"prompt": "hi")", "not a JSON object"},
        BadLine{"NotAnObject", R"(["hi"])", "not a JSON object"},
        BadLine{"TwoObjects", R"({"prompt": "a"} {"prompt": "b"})", "not a JSON object"},
        BadLine{"NotANumberInJson", R"({"prompt": "a", "temperature": NaN})", "not a JSON object"},
        BadLine{"NoPrompt", R"({"max_tokens": 3})", "either 'prompt' or 'prompt_token_ids'"},
        BadLine{"TwoPrompts", R"({"prompt": "a", "prompt_token_ids": [1]})", "either"},
        BadLine{"UnknownField", R"({"prompt": "a", "max_token": 3})", "unknown field 'max_token'"},
        BadLine{"PromptOfAnotherType", R"({"prompt": 3})", "'prompt' must be a string, found 3"},
        BadLine{"IdOfAnotherType", R"({"prompt_token_ids": [1, "2"]})", "'prompt_token_ids'"},
        BadLine{"FractionalId", R"({"prompt_token_ids": [1.5]})", "32-bit integer, found 1.5"},
        BadLine{"LargeId", R"({"prompt_token_ids": [4294967296]})", "found 4294967296"},
        BadLine{"LargeMaxTokens", R"({"prompt": "a", "max_tokens": 18446744073709551615})",
                "32-bit integer"},
        BadLine{"SmallMaxTokens", R"({"prompt": "a", "max_tokens": -2147483649})",
                "32-bit integer"},
        BadLine{"NegativeSeed", R"({"prompt": "a", "seed": -1})", "'seed' must be an integer"},
        BadLine{"BooleanTemperature", R"({"prompt": "a", "temperature": true})", "a number"},
        BadLine{"NullTopP", R"({"prompt": "a", "top_p": null})", "'top_p' must be a number"},
        BadLine{"NumericFlag", R"({"prompt": "a", "ignore_eos": 1})", "true or false"},
        BadLine{"NumericStop", R"({"prompt": "a", "stop": 1})", "list of strings"},
        BadLine{"NumberInStop", R"({"prompt": "a", "stop": ["a", 1]})", "found 1"}),
    [](const testing::TestParamInfo<BadLine>& param) { return param.param.name; });

TEST(PromptFile, KeepsTheOrderAndSkipsEmptyLines) {
  std::istringstream in("{\"prompt\": \"a\"}\r\n\n  \t\n{\"prompt\": \"b\", \"top_k\": 4}");
  const auto requests = ReadPrompts(in, Defaults());
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 2u);
  EXPECT_EQ((*requests)[0].text(), "a");
  EXPECT_FALSE((*requests)[0].sampling().has_top_k());
  EXPECT_EQ((*requests)[1].text(), "b");
  EXPECT_EQ((*requests)[1].sampling().top_k(), 4);
}

TEST(PromptFile, ErrorsNameTheLine) {
  std::istringstream in("{\"prompt\": \"a\"}\n\n{\"promt\": \"b\"}\n");
  const absl::Status status = ReadPrompts(in, Defaults()).status();
  EXPECT_EQ(std::string(status.message()).rfind("line 3: ", 0), 0u) << status;
}

TEST(PromptFile, ALineThatIsNotUtf8IsNamedWithTheByte) {
  std::istringstream in("{\"prompt\": \"a\"}\n{\"prompt\": \"a\xff\"}\n");
  EXPECT_EQ(ReadPrompts(in, {}).status(),
            absl::InvalidArgumentError("line 2 is not valid UTF-8 at byte 13 of 16"));
}

TEST(PromptFile, WithoutAPromptIsAnError) {
  std::istringstream in("\n \n");
  EXPECT_TRUE(absl::IsInvalidArgument(ReadPrompts(in, Defaults()).status()));
}

}  // namespace
}  // namespace tandem::client
