#include "coordinator/api/grpc/params_from_proto.h"

#include <gtest/gtest.h>

#include <string>
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

TEST(ParamsFromProto, AnEmptyListOfIdsIsAPrompt) {
  v1::GenerateRequest proto;
  proto.mutable_token_ids();
  EXPECT_TRUE(std::get<std::vector<TokenId>>(ParamsFromProto(proto).prompt).empty());
}

}  // namespace
}  // namespace tandem::coordinator
