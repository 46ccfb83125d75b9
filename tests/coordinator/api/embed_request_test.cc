#include "coordinator/api/embed_request.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/coordinator/api/serving_model_for_test.h"

namespace tandem::coordinator {
namespace {

using Ids = std::vector<TokenId>;

EmbedParams Params(std::vector<TextOrIds> inputs) {
  return {.request_id = "r", .inputs = std::move(inputs)};
}

std::string Refusal(EmbedParams params) {
  const auto requests = BuildEmbedRequests(std::move(params), ServingModelForTest());
  EXPECT_EQ(requests.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(requests.status().message());
}

TEST(EmbedRequestTest, EachInputIsARequest) {
  EmbedParams params = Params({"xy", Ids{7, 8}});
  params.cache_salt = "salt";
  params.adapter = "b";
  ServingModel model = ServingModelForTest();
  model.adapters = {"a", "b"};
  params.priority = -3;
  const auto requests = BuildEmbedRequests(params, model);
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 2u);
  EXPECT_EQ((*requests)[0].prompt, (Ids{kBos, 'x', 'y'}));
  EXPECT_EQ((*requests)[0].id, "r");
  EXPECT_EQ((*requests)[1].prompt, (Ids{7, 8}));
  EXPECT_EQ((*requests)[1].id, "r#1");
  for (const Request& request : *requests) {
    EXPECT_FALSE(request.generates());
    EXPECT_EQ(request.sampling.max_tokens, 0u);
    EXPECT_EQ(request.cache_salt, "salt");
    EXPECT_EQ(request.adapter, 2u);
    EXPECT_EQ(request.priority, -3);
  }
}

TEST(EmbedRequestTest, PoolsAsTheRequestSaysElseAsTheModelSays) {
  ServingModel model = ServingModelForTest();
  EXPECT_EQ((*BuildEmbedRequests(Params({"x"}), model))[0].pooling, Pooling::kLast);
  model.pooling = Pooling::kMean;
  EXPECT_EQ((*BuildEmbedRequests(Params({"x"}), model))[0].pooling, Pooling::kMean);
  EmbedParams params = Params({"x"});
  params.pooling = Pooling::kCls;
  EXPECT_EQ((*BuildEmbedRequests(params, model))[0].pooling, Pooling::kCls);
}

TEST(EmbedRequestTest, WhatCannotBeEmbeddedIsRefused) {
  EXPECT_EQ(Refusal(Params({})), "the request has 0 inputs, it must have 1 to 128");
  EXPECT_EQ(Refusal(Params(std::vector<TextOrIds>(129, "x"))),
            "the request has 129 inputs, it must have 1 to 128");
  EXPECT_EQ(Refusal(Params({"x", ""})), "inputs[1]: it has no tokens");
  EXPECT_EQ(Refusal(Params({"x", Ids{}})), "inputs[1]: it has no tokens");
  EXPECT_EQ(Refusal(Params({TextOrIds()})), "inputs[0]: set text or token_ids");
  for (const int32_t dimensions : {-1, 0, 7}) {
    EmbedParams params = Params({"x"});
    params.dimensions = dimensions;
    EXPECT_EQ(Refusal(params),
              "dimensions is " + std::to_string(dimensions) + ", it must be from 1 to 6");
  }
}

TEST(EmbedRequestTest, IsCutAndThenNormalised) {
  std::vector<float> values = {3, 4, 12};
  FinishEmbedding(std::nullopt, false, values);
  EXPECT_EQ(values, (std::vector<float>{3, 4, 12}));
  FinishEmbedding(std::nullopt, true, values);
  EXPECT_FLOAT_EQ(values[2], 12.0f / 13);
  values = {3, 4, 12};
  FinishEmbedding(2, true, values);
  EXPECT_EQ(values, (std::vector<float>{0.6f, 0.8f}));
  values = {0, 0};
  FinishEmbedding(5, true, values);
  EXPECT_EQ(values, (std::vector<float>{0, 0}));
  values = {1e30f, 0};
  FinishEmbedding(std::nullopt, true, values);
  EXPECT_EQ(values, (std::vector<float>{1, 0}));
}

}  // namespace
}  // namespace tandem::coordinator
