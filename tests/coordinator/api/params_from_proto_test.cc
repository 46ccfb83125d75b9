#include "coordinator/api/grpc/params_from_proto.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tandem::coordinator {
namespace {

TEST(ParamsFromProto, WhatIsNotSetTakesItsDefault) {
  const GenerateParams params = ParamsFromProto(v1::GenerateRequest());
  EXPECT_TRUE(params.request_id.empty());
  EXPECT_TRUE(std::holds_alternative<std::monostate>(params.prompt));
  EXPECT_TRUE(params.encode.add_special);
  EXPECT_FALSE(params.encode.parse_special);
  EXPECT_EQ(params.temperature, 1);
  EXPECT_EQ(params.top_p, 1);
  EXPECT_FALSE(params.max_tokens.has_value());
  EXPECT_FALSE(params.seed.has_value());
  EXPECT_FALSE(params.logprobs.has_value());
  EXPECT_FALSE(params.prompt_logprobs.has_value());
  EXPECT_FALSE(params.include_stop);
  EXPECT_EQ(params.n, 1);
  EXPECT_TRUE(params.skip_special_tokens);
  EXPECT_TRUE(params.cache_salt.empty());
  EXPECT_EQ(params.priority, 0);
  EXPECT_FALSE(params.truncate_prompt_tokens.has_value());
  EXPECT_EQ(params.typical_p, 1);
  EXPECT_EQ(params.xtc_probability, 0);
  EXPECT_EQ(params.xtc_threshold, 0.1f);
  EXPECT_EQ(params.penalties.repetition, 1);
  EXPECT_EQ(params.penalties.window, -1);
  EXPECT_EQ(params.penalties.dry_base, 1.75f);
  EXPECT_EQ(params.penalties.dry_allowed_length, 2);
  EXPECT_EQ(params.penalties.dry_penalty_last_n, -1);
}

TEST(ParamsFromProto, TakesEveryField) {
  v1::GenerateRequest proto;
  proto.set_request_id("mine");
  proto.set_text("hi");
  proto.set_add_special_tokens(false);
  proto.set_parse_special_tokens(true);
  v1::SamplingParams& sampling = *proto.mutable_sampling();
  sampling.set_temperature(0);
  sampling.set_top_p(0.5f);
  sampling.set_top_k(-1);
  sampling.set_min_p(0.25f);
  sampling.set_max_tokens(9);
  sampling.set_min_tokens(8);
  sampling.set_seed(7);
  sampling.set_ignore_eos(true);
  sampling.add_stop("end");
  sampling.add_stop_token_ids(3);
  sampling.set_logprobs(0);
  sampling.set_prompt_logprobs(-1);
  const GenerateParams params = ParamsFromProto(proto);
  EXPECT_EQ(params.request_id, "mine");
  EXPECT_EQ(std::get<std::string>(params.prompt), "hi");
  EXPECT_FALSE(params.encode.add_special);
  EXPECT_TRUE(params.encode.parse_special);
  EXPECT_EQ(params.temperature, 0);
  EXPECT_EQ(params.top_p, 0.5f);
  EXPECT_EQ(params.top_k, -1);
  EXPECT_EQ(params.min_p, 0.25f);
  EXPECT_EQ(params.max_tokens, 9);
  EXPECT_EQ(params.min_tokens, 8);
  EXPECT_EQ(params.seed, 7u);
  EXPECT_TRUE(params.ignore_eos);
  EXPECT_EQ(params.stop, std::vector<std::string>{"end"});
  EXPECT_EQ(params.stop_token_ids, std::vector<TokenId>{3});
  EXPECT_EQ(params.logprobs, 0);
  EXPECT_EQ(params.prompt_logprobs, -1);
}

TEST(ParamsFromProto, TakesEverySampler) {
  v1::GenerateRequest proto;
  v1::SamplingParams& sampling = *proto.mutable_sampling();
  sampling.set_include_stop(true);
  sampling.set_frequency_penalty(0.5f);
  sampling.set_presence_penalty(0.25f);
  sampling.set_repetition_penalty(1.5f);
  sampling.set_penalty_window(64);
  (*sampling.mutable_logit_bias())[7] = -3;
  sampling.add_bad_words("bad");
  sampling.set_typical_p(0.75f);
  sampling.set_xtc_probability(0.125f);
  sampling.set_xtc_threshold(0.2f);
  sampling.set_dry_multiplier(0.8f);
  sampling.set_dry_base(2);
  sampling.set_dry_allowed_length(3);
  sampling.set_dry_penalty_last_n(99);
  sampling.add_dry_sequence_breakers("|");
  const GenerateParams params = ParamsFromProto(proto);
  EXPECT_TRUE(params.include_stop);
  EXPECT_EQ(params.penalties.frequency, 0.5f);
  EXPECT_EQ(params.penalties.presence, 0.25f);
  EXPECT_EQ(params.penalties.repetition, 1.5f);
  EXPECT_EQ(params.penalties.window, 64);
  EXPECT_EQ(params.logit_bias, (std::vector<std::pair<TokenId, float>>{{7, -3.0f}}));
  EXPECT_EQ(params.bad_words, std::vector<std::string>{"bad"});
  EXPECT_EQ(params.typical_p, 0.75f);
  EXPECT_EQ(params.xtc_probability, 0.125f);
  EXPECT_EQ(params.xtc_threshold, 0.2f);
  EXPECT_EQ(params.penalties.dry_multiplier, 0.8f);
  EXPECT_EQ(params.penalties.dry_base, 2);
  EXPECT_EQ(params.penalties.dry_allowed_length, 3);
  EXPECT_EQ(params.penalties.dry_penalty_last_n, 99);
  EXPECT_EQ(params.dry_sequence_breakers, std::vector<std::string>{"|"});
}

TEST(ParamsFromProto, TakesConstraints) {
  using Kind = Constraint::Kind;
  v1::GenerateRequest proto;
  v1::SamplingParams& sampling = *proto.mutable_sampling();
  const auto constraint = [&] { return ParamsFromProto(proto).constraint; };
  EXPECT_EQ(constraint().kind, Kind::kNone);
  sampling.set_json_schema("{}");
  EXPECT_EQ(constraint().kind, Kind::kJsonSchema);
  EXPECT_EQ(constraint().text, "{}");
  sampling.set_json_object(true);
  EXPECT_EQ(constraint().kind, Kind::kJsonObject);
  sampling.set_json_object(false);
  EXPECT_EQ(constraint().kind, Kind::kNone);
  sampling.set_regex("a");
  EXPECT_EQ(constraint().kind, Kind::kRegex);
  EXPECT_EQ(constraint().text, "a");
  sampling.mutable_choice()->add_texts("b");
  sampling.mutable_choice()->add_texts("c");
  EXPECT_EQ(constraint().kind, Kind::kChoice);
  EXPECT_EQ(constraint().choices, (std::vector<std::string>{"b", "c"}));
  EXPECT_FALSE(constraint().reasoning.has_value());
  sampling.mutable_reasoning()->set_start("<");
  sampling.mutable_reasoning()->set_end(">");
  sampling.mutable_reasoning()->set_answer_start(":");
  const grammar::Reasoning reasoning = constraint().reasoning.value();
  EXPECT_EQ(reasoning.start + reasoning.end + reasoning.answer_start, "<>:");
}

TEST(ParamsFromProto, AnEmptyListOfIdsIsAPrompt) {
  v1::GenerateRequest proto;
  proto.mutable_token_ids();
  EXPECT_TRUE(std::get<std::vector<TokenId>>(ParamsFromProto(proto).prompt).empty());
}

}  // namespace
}  // namespace tandem::coordinator
