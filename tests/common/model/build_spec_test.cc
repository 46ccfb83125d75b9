#include "common/model/build_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "tests/common/model/tiny_model.h"

namespace tandem::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<ModelSpec> SpecOf(const TinyModel& model) {
  const BuiltModel built = BuildTiny(model);
  return BuildSpec(built.file);
}

absl::StatusOr<ModelSpec> SpecOfFile(const std::string& path) {
  const auto file = gguf::File::Open("tests/golden/" + path);
  if (!file.ok()) return file.status();
  return BuildSpec(*file);
}

std::string Message(const TinyModel& model) {
  const auto spec = SpecOf(model);
  return spec.ok() ? "" : std::string(spec.status().message());
}

TEST(BuildSpecTest, GoldenLlama) {
  const auto spec = SpecOfFile("arch/llama/model.gguf");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->architecture, "llama");
  EXPECT_EQ(spec->name, "golden llama");
  EXPECT_EQ(spec->quantization, "F32");
  EXPECT_EQ(spec->num_layers, 3u);
  EXPECT_EQ(spec->hidden_size, 128u);
  EXPECT_EQ(spec->num_heads, 8u);
  EXPECT_EQ(spec->num_kv_heads, 2u);
  EXPECT_EQ(spec->head_dim, 16u);
  EXPECT_EQ(spec->value_dim, 16u);
  EXPECT_EQ(spec->ffn_size, 192u);
  EXPECT_EQ(spec->vocab_size, 323u);
  EXPECT_EQ(spec->context_length, 2048u);
  EXPECT_FLOAT_EQ(spec->norm_epsilon, 1e-5f);
  EXPECT_EQ(spec->attention_scale, 0.25f);
  EXPECT_EQ(spec->rope.pairing, RopePairing::kAdjacent);
  EXPECT_FALSE(!spec->Has(Feature::kUntiedHead) || spec->Has(Feature::kQkvBias) ||
               spec->Has(Feature::kOutputBias) || spec->Has(Feature::kQkNorm) ||
               spec->Has(Feature::kRopeFactors));
  ASSERT_EQ(spec->kv_groups.size(), 1u);
  EXPECT_EQ(spec->kv_groups[0].window_tokens, 0u);
  EXPECT_THAT(spec->kv_groups[0].layers, ElementsAre(0, 1, 2));
}

TEST(BuildSpecTest, AVocabularyOnlyIsNotAModel) {
  TinyModel model;
  model.skip = [](const std::string&) { return true; };
  const auto spec = SpecOf(model);
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(model), HasSubstr("the file has no tensors: a vocabulary alone"));
}

TEST(BuildSpecTest, GoldenRelatives) {
  const auto qwen2 = SpecOfFile("arch/qwen2/model.gguf");
  ASSERT_TRUE(qwen2.ok()) << qwen2.status();
  EXPECT_TRUE(!qwen2->Has(Feature::kUntiedHead));
  EXPECT_TRUE(qwen2->Has(Feature::kQkvBias));
  EXPECT_EQ(qwen2->rope.pairing, RopePairing::kHalves);
  EXPECT_EQ(qwen2->rope.base, 1e6f);

  const auto qwen3 = SpecOfFile("arch/qwen3/model.gguf");
  ASSERT_TRUE(qwen3.ok()) << qwen3.status();
  EXPECT_TRUE(qwen3->Has(Feature::kQkNorm));
  EXPECT_FALSE(!qwen3->Has(Feature::kUntiedHead));
  EXPECT_EQ(qwen3->head_dim, 32u);  // not hidden / heads
  EXPECT_EQ(qwen3->hidden_size, 64u);

  const auto factors = SpecOfFile("arch/llama-rope-freqs/model.gguf");
  ASSERT_TRUE(factors.ok()) << factors.status();
  EXPECT_TRUE(factors->Has(Feature::kRopeFactors));

  const auto yarn = SpecOfFile("arch/llama-yarn/model.gguf");
  ASSERT_TRUE(yarn.ok()) << yarn.status();
  EXPECT_EQ(yarn->rope.scaling, RopeScalingKind::kYarn);
  EXPECT_EQ(yarn->rope.factor, 4.0f);
  EXPECT_EQ(yarn->rope.original_context, 64u);
}

TEST(BuildSpecTest, EveryFourthLayerOfSmollm3HasNoRope) {
  TinyModel model;
  model.architecture = "smollm3";
  model.layers = 9;
  const auto spec = SpecOf(model);
  ASSERT_TRUE(spec.ok()) << spec.status();
  for (uint32_t layer = 0; layer < 9; ++layer) {
    EXPECT_EQ(spec->Rotates(layer), layer != 3 && layer != 7) << layer;
  }
}

TEST(BuildSpecTest, DraftLayersAreTheLastBlocks) {
  TinyModel model;
  model.layers = 3;
  model.more_keys = [](gguf::GgufBuilder& builder) {
    builder.AddUint32("llama.nextn_predict_layers", 1);
  };
  const auto whole = SpecOf(model);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->num_layers, 2u);
  EXPECT_EQ(whole->num_draft_layers, 1u);
  ASSERT_EQ(whole->kv_groups.size(), 1u);
  EXPECT_EQ(whole->kv_groups[0].layers, (std::vector<uint32_t>{0, 1}));
  // Their tensors may be missing.
  model.skip = [](const std::string& name) { return name.starts_with("blk.2."); };
  const auto trunk = SpecOf(model);
  ASSERT_TRUE(trunk.ok()) << trunk.status();
  EXPECT_EQ(*trunk, *whole);
  model.more_keys = [](gguf::GgufBuilder& builder) {
    builder.AddUint32("llama.nextn_predict_layers", 3);
  };
  EXPECT_EQ(Message(model),
            "key \"llama.nextn_predict_layers\": needed fewer than the 3 blocks, found 3");
}

TEST(BuildSpecTest, Llama4Layers) {
  const auto spec = SpecOfFile("arch/llama4-chunk/model.gguf");
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_EQ(spec->kv_groups.size(), 2u);
  EXPECT_EQ(spec->kv_groups[0].layers, (std::vector<uint32_t>{3}));
  EXPECT_EQ(spec->kv_groups[0].window_tokens, 0u);
  EXPECT_EQ(spec->kv_groups[1].window_tokens, 32u);
  EXPECT_TRUE(spec->kv_groups[1].chunked);
  EXPECT_EQ(spec->temperature,
            (TemperatureSpec{.scale = 0.1f, .length = 48, .offset = 1, .without_rope_only = true}));
  EXPECT_TRUE(spec->norms_after_rope);
  EXPECT_EQ(spec->moe->shared_ffn_size, spec->moe->ffn_size);
  for (uint32_t layer = 0; layer < 5; ++layer) {
    EXPECT_EQ(spec->Rotates(layer), layer != 3) << layer;
    EXPECT_EQ(spec->IsMoe(layer), layer % 2 == 1) << layer;
  }
}

TEST(BuildSpecTest, Llama4HasChunksUnlessTheFileSaysOtherwise) {
  TinyModel model;
  model.architecture = "llama4";
  model.context = 20000;
  EXPECT_EQ(SpecOf(model)->kv_groups[0].window_tokens, 8192u);
  EXPECT_EQ(SpecOf(model)->temperature->length, 8192u);
  model.context = 8192;  // one chunk
  EXPECT_EQ(SpecOf(model)->kv_groups[0].window_tokens, 0u);
  model.more_keys = [](gguf::GgufBuilder& builder) {
    builder.AddUint32("llama4.attention.sliding_window", 0);
  };
  EXPECT_EQ(Message(model), "key \"llama4.attention.sliding_window\": needed at least 1, found 0");
}

TEST(BuildSpecTest, WhatIsNotSupportedIsNamed) {
  const auto unknown = SpecOfFile("bad-gguf/unknown-architecture.gguf");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(unknown.status().message()),
              HasSubstr("is not supported, only llama, qwen2, qwen3, qwen2moe, qwen3moe, gpt2, "
                        "phi3, deepseek2, gpt-oss, gemma2, gemma3, gemma4, qwen3next, qwen35, "
                        "qwen35moe, glm4moe, llama4, minimax-m2, mistral3, smollm3"));
  TinyModel types;
  types.hidden = types.ffn = 256;
  types.head_dim = 64;
  types.matrix_type = tensor::Type::kF64;
  EXPECT_THAT(Message(types), HasSubstr("type F64 is not supported, only F32, F16, Q4_0, "));
  TinyModel encoder;
  encoder.more_keys = [](gguf::GgufBuilder& builder) {
    builder.Add("llama.attention.causal", gguf::ValueType::kBool, uint8_t{0});
  };
  EXPECT_THAT(Message(encoder), HasSubstr("only causal models are supported"));
  TinyModel vision;
  vision.more_keys = [](gguf::GgufBuilder& builder) {
    builder.AddUint32("llama.rope.dimension_sections", 4);
  };
  EXPECT_EQ(Message(vision),
            "key \"llama.rope.dimension_sections\": positions in sections are not supported");
}

TEST(BuildSpecTest, QuantisationIsNamed) {
  EXPECT_EQ(SpecOfFile("quant/models/Q4_K_M.gguf")->quantization, "Q4_K_M");
  EXPECT_EQ(SpecOfFile("quant/models/Q8_0.gguf")->quantization, "Q8_0");
  TinyModel unnamed;
  unnamed.matrix_type = tensor::Type::kQ4_0;
  EXPECT_EQ(SpecOf(unnamed)->quantization, "Q4_0");
}

TEST(BuildSpecTest, FeaturesAreProbedNotGuessed) {
  TinyModel model;
  model.qkv_bias = model.output_bias = model.qk_norm = model.tied = true;
  model.rope_factors = {1, 2, 4, 8};
  for (const std::string architecture : {"llama", "qwen2", "qwen3"}) {
    model.architecture = architecture;
    const auto spec = SpecOf(model);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_TRUE(spec->Has(Feature::kQkvBias) && spec->Has(Feature::kOutputBias) &&
                spec->Has(Feature::kQkNorm) && !spec->Has(Feature::kUntiedHead) &&
                spec->Has(Feature::kRopeFactors));
  }
  TinyModel plain;
  plain.architecture = "qwen2";
  const auto spec = SpecOf(plain);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_FALSE(spec->Has(Feature::kQkvBias) || !spec->Has(Feature::kUntiedHead));
}

TEST(BuildSpecTest, AFeatureIsWholeOrAbsent) {
  TinyModel model;
  model.qkv_bias = true;
  model.skip = [](const std::string& name) { return name == "blk.1.attn_k.bias"; };
  EXPECT_EQ(Message(model),
            "tensor \"blk.1.attn_k.bias\" is missing, but others of its kind are there");
  TinyModel qwen3;  // whose mathematics has no form without
  qwen3.architecture = "qwen3";
  EXPECT_THAT(Message(qwen3), HasSubstr("tensor \"blk.0.attn_q_norm.weight\" is missing"));
}

TEST(BuildSpecTest, TensorsThatWouldBeLeftOutAreRefused) {
  struct Case {
    std::string extra;
    std::string message;
  };
  const Case kCases[] = {
      {"blk.0.attn_gate.bias", "is not one that architecture llama has"},
      {"blk.2.attn_q.weight", "is of layer 2, but there are only 2 layers"},
      {"blk.01.attn_q.weight", "is not one that"},
      {"blk.4294967296.attn_q.weight", "is not one that"},
      {"blk..attn_q.weight", "is not one that"},
      {"blk.-1.attn_q.weight", "is not one that"},
      {"blk.{L}.attn_q.weight", "is not one that"},
      {"", "is not one that"},
  };
  for (const Case& c : kCases) {
    // The builder has no hook for extra tensors, so the model's bytes are read into a new one.
    const BuiltModel built = BuildTiny(TinyModel());
    gguf::GgufBuilder builder;
    for (const gguf::Entry& entry : built.file.metadata().entries()) {
      const bool text = entry.value.type == gguf::ValueType::kString;
      gguf::ByteWriter value;
      if (text) value.Number(static_cast<uint64_t>(entry.value.bytes.size()));
      if (entry.value.type == gguf::ValueType::kArray) {
        value.Number(entry.value.element_type).Number(entry.value.count);
      }
      builder.AddRaw(entry.key, entry.value.type, value.Raw(entry.value.bytes).bytes());
    }
    for (const gguf::TensorInfo& tensor : built.file.tensors()) {
      builder.AddTensor(tensor.name, {tensor.dims.begin(), tensor.dims.begin() + tensor.num_dims},
                        tensor.type, {tensor.data, tensor.bytes});
    }
    const float zero = 0;
    builder.AddTensor(c.extra, {1}, tensor::Type::kF32, std::as_bytes(std::span(&zero, 1)));
    const auto bytes = builder.Build();
    const auto file = gguf::File::Parse(bytes);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_THAT(std::string(BuildSpec(*file).status().message()), HasSubstr(c.message)) << c.extra;
  }
}

TEST(BuildSpecTest, AbsurdNumbersAreRefused) {
  struct Case {
    std::string key;
    float value;
  };
  const Case kCases[] = {
      {"rope.freq_base", NAN},           {"rope.freq_base", INFINITY},
      {"rope.freq_base", 0.0f},          {"rope.freq_base", -10000.0f},
      {"rope.freq_base", 1.0f},          {"rope.scaling.factor", NAN},
      {"rope.scaling.factor", 0.0f},     {"rope.scaling.factor", -2.0f},
      {"rope.scaling.attn_factor", NAN}, {"rope.scaling.attn_factor", -1.0f},
  };
  for (const Case& c : kCases) {
    TinyModel model;
    model.more_keys = [&](gguf::GgufBuilder& builder) {
      builder.AddFloat("llama." + c.key, c.value);
    };
    EXPECT_THAT(Message(model), HasSubstr("key \"llama." + c.key + "\": needed a number above"))
        << c.key << " " << c.value;
  }
  for (const float epsilon : {NAN, INFINITY, -1.0f, 0.0f, 2.0f}) {
    TinyModel model;
    model.skip_keys = {"attention.layer_norm_rms_epsilon"};
    model.more_keys = [&](gguf::GgufBuilder& builder) {
      builder.AddFloat("llama.attention.layer_norm_rms_epsilon", epsilon);
    };
    EXPECT_THAT(Message(model), HasSubstr("layer_norm_rms_epsilon: needed a number above 0"));
  }
}

TEST(BuildSpecTest, PoolingIsTheFilesWhereItIsKnown) {
  EXPECT_EQ(SpecOf(TinyModel())->pooling, PoolingType::kNone);
  const std::pair<uint32_t, PoolingType> kinds[] = {
      {0, PoolingType::kNone}, {1, PoolingType::kMean}, {2, PoolingType::kCls},
      {3, PoolingType::kLast}, {4, PoolingType::kNone}, {UINT32_MAX, PoolingType::kNone}};
  for (const auto& [value, pooling] : kinds) {
    TinyModel model;
    model.more_keys = [value = value](gguf::GgufBuilder& builder) {
      builder.AddUint32("llama.pooling_type", value);
    };
    const auto spec = SpecOf(model);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->pooling, pooling) << value;
  }
}

TEST(BuildSpecTest, AbsurdSizesAreRefused) {
  for (const std::string key :
       {"context_length", "embedding_length", "block_count", "feed_forward_length",
        "attention.head_count", "attention.head_count_kv", "attention.key_length",
        "attention.value_length", "rope.dimension_count"}) {
    for (const uint32_t value : {0u, 1u << 31, UINT32_MAX}) {
      TinyModel model;
      model.skip_keys = {key};
      model.more_keys = [&](gguf::GgufBuilder& builder) {
        builder.AddUint32("llama." + key, value);
      };
      EXPECT_NE(Message(model), "") << key << " " << value;
    }
  }
}

TEST(BuildSpecTest, EveryLayerHasAFeedForwardBlock) {
  TinyModel dense;
  dense.architecture = "minimax-m2";
  dense.qk_norm = true;
  EXPECT_EQ(Message(dense), "layer 0 is dense, of which architecture minimax-m2 has none");
  TinyModel mixture;
  mixture.architecture = "gemma3";
  mixture.qk_norm = true;
  mixture.skip = [](const std::string& name) { return name.find(".ffn_") != std::string::npos; };
  mixture.more_keys = [](gguf::GgufBuilder& builder) {
    builder.AddUint32("gemma3.expert_count", 4);
    builder.AddUint32("gemma3.expert_used_count", 2);
  };
  EXPECT_EQ(Message(mixture),
            "layer 0 is a mixture of experts, of which architecture gemma3 has none");
}

TEST(BuildSpecTest, ATensorNeedsTheKeyOfItsSize) {
  std::ifstream file("tests/golden/arch/gemma4/model.gguf", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t key = text.find("gemma4.embedding_length_per_layer_input");
  ASSERT_NE(key, std::string::npos);
  text[key] = 'x';  // another architecture's
  const auto parsed = gguf::File::Parse(std::as_bytes(std::span(text)));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(BuildSpec(*parsed).status().message(),
            "tensor \"per_layer_token_embd.weight\" is there, but a key that gives its size is "
            "missing or 0");
}

TEST(BuildSpecTest, ExpertsHaveOneSize) {
  std::vector<int32_t> sizes;
  TinyModel model;
  model.skip_keys = {"feed_forward_length"};
  model.more_keys = [&](gguf::GgufBuilder& builder) {
    builder.AddUint32("llama.expert_count", 4);
    builder.AddUint32("llama.expert_used_count", 2);
    builder.AddArray("llama.expert_feed_forward_length", gguf::ValueType::kInt32, sizes);
  };
  sizes = {64, 32};
  EXPECT_EQ(
      Message(model),
      "key \"llama.expert_feed_forward_length\": needed one value for all layers, found 64 and "
      "32");
  sizes = {64, 64};
  EXPECT_THAT(Message(model), HasSubstr("is of a dense layer"));  // the sizes have been read
}

TEST(BuildSpecTest, HeadsMustFit) {
  TinyModel uneven;
  uneven.kv_heads = 3;
  EXPECT_THAT(Message(uneven), HasSubstr("the 4 query heads cannot share 3 KV heads evenly"));
  TinyModel derived;  // head size from hidden / heads
  derived.skip_keys = {"attention.key_length", "attention.value_length"};
  EXPECT_EQ(SpecOf(derived)->head_dim, 8u);
  derived.heads = 3;
  derived.kv_heads = 3;
  EXPECT_THAT(Message(derived), HasSubstr("the 3 heads do not divide the embedding length 32"));
  TinyModel odd_rope;
  odd_rope.more_keys = [](gguf::GgufBuilder& builder) {
    builder.AddUint32("llama.rope.dimension_count", 7);
  };
  EXPECT_THAT(Message(odd_rope),
              HasSubstr("needed an even number from 2 to the head size 8, found 7"));
  TinyModel values;
  values.skip_keys = {"attention.value_length"};
  values.more_keys = [](gguf::GgufBuilder& builder) {
    builder.AddUint32("llama.attention.value_length", 4);
  };
  EXPECT_EQ(SpecOf(values).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(BuildSpecTest, RopeFactorsMustBePositiveNumbers) {
  for (const float bad : {0.0f, -1.0f, NAN, INFINITY}) {
    TinyModel model;
    model.rope_factors = {1, 1, bad, 1};
    EXPECT_THAT(Message(model), HasSubstr("tensor \"rope_freqs.weight\": value 2")) << bad;
  }
  TinyModel model;
  model.rope_factors = {1, 1};
  EXPECT_THAT(Message(model), HasSubstr("needed shape [4], found [2]"));
}

}  // namespace
}  // namespace tandem::model
