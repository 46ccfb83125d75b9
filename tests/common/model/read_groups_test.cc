// KV groups of files whose layers differ: windows, heads, layers without a cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/gguf/file.h"
#include "common/model/build_spec.h"
#include "tests/common/model/tiny_model.h"

namespace tandem::model {
namespace {

using gguf::GgufBuilder;
using gguf::ValueType;
using testing::ElementsAre;
using testing::HasSubstr;

ModelSpec SpecOfGolden(const std::string& name) {
  const auto file = gguf::File::Open("tests/golden/arch/" + name + "/model.gguf");
  EXPECT_TRUE(file.ok()) << file.status();
  const auto spec = BuildSpec(*file);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.value_or(ModelSpec());
}

TEST(ReadGroupsTest, LastLayersReadTheLastCachesOfTheirKind) {
  const ModelSpec spec = SpecOfGolden("gemma4");
  EXPECT_EQ(spec.kv_groups,
            (std::vector<KvGroupSpec>{
                {.window_tokens = 0, .layers = {4}, .heads = {}, .readers = {{7, 4}}},
                {.window_tokens = 24,
                 .layers = {0, 1, 2, 3},
                 .heads = HeadSizes{1, 64, 64},
                 .readers = {{5, 3}, {6, 3}}}}));
  EXPECT_EQ(spec.HeadsOf(4u), (HeadSizes{1, 128, 128}));
  EXPECT_EQ(spec.FfnSize(4), 48u);
  EXPECT_EQ(spec.FfnSize(5), 96u);
  EXPECT_EQ(spec.ffn_size, 96u);
  EXPECT_EQ(spec.layer_input_size, 16u);
  EXPECT_EQ(spec.layer_output_scales.size(), 8u);
}

TEST(ReadGroupsTest, HeadsDifferByLayer) {
  const ModelSpec spec = SpecOfGolden("gemma4-dense");
  EXPECT_EQ(spec.HeadsOf(0u), (HeadSizes{2, 64, 64}));
  EXPECT_EQ(spec.HeadsOf(2u), (HeadSizes{1, 128, 128}));
  EXPECT_THAT(spec.values_are_keys, ElementsAre(false, false, true, false, false, true));
  EXPECT_EQ(spec.window_rope->rotary_dims, 64u);
  EXPECT_EQ(spec.rope.rotary_dims, 128u);
  EXPECT_EQ(spec.logit_softcap, 8.0f);
  EXPECT_EQ(spec.attention_scale, 1.0f);
}

absl::StatusOr<ModelSpec> SpecOf(const TinyModel& model) {
  return BuildSpec(BuildTiny(model).file);
}

// A llama of four layers with these keys; the message of its error.
std::string After(const std::vector<std::string>& skip_keys,
                  std::function<void(GgufBuilder&)> more_keys) {
  TinyModel model;
  model.layers = 4;
  model.skip_keys = skip_keys;
  model.more_keys = std::move(more_keys);
  return std::string(SpecOf(model).status().message());
}

TEST(ReadGroupsTest, ListsHaveAValuePerLayer) {
  const auto kv_heads = [](std::vector<int32_t> list) {
    return After({"attention.head_count_kv"}, [&](GgufBuilder& builder) {
      builder.AddArray("llama.attention.head_count_kv", ValueType::kInt32, list);
    });
  };
  EXPECT_EQ(kv_heads({2, 2, 2, 2}), "");
  EXPECT_EQ(kv_heads({2, 2}),
            "key \"llama.attention.head_count_kv\": needed 4 values, one per layer, found 2");
  EXPECT_EQ(kv_heads({2, 2, 0, 2}),
            "key \"llama.attention.head_count_kv\": needed at least 1, found 0");
  EXPECT_EQ(kv_heads({}), "key \"llama.attention.head_count_kv\" is empty");
  EXPECT_EQ(kv_heads({2, 2, 3, 2}), "the 4 query heads cannot share 3 KV heads evenly");
  EXPECT_THAT(kv_heads({2, 1, 2, 2}), HasSubstr("\"blk.1.attn_k.weight\": needed shape [32, 8]"));
  const auto ffn = [](std::vector<int32_t> list) {
    return After({"feed_forward_length"}, [&](GgufBuilder& builder) {
      builder.AddArray("llama.feed_forward_length", ValueType::kInt32, list);
    });
  };
  EXPECT_EQ(ffn({64, 64, 64, 64}), "");
  EXPECT_EQ(ffn({64, 64, 64}), "feed_forward_length: needed 4 values, one per layer, found 3");
  EXPECT_THAT(ffn({64, 32, 64, 64}), HasSubstr("\"blk.1.ffn_gate.weight\": needed shape [32, 32]"));
}

TEST(ReadGroupsTest, WhatAListedWindowNeeds) {
  std::vector<uint8_t> pattern = {1, 0};
  TinyModel model;
  model.architecture = "gemma4";
  model.rope_factors = {1, 1, 1, 1};
  const auto message = [&] { return std::string(SpecOf(model).status().message()); };
  EXPECT_EQ(message(), "key \"gemma4.attention.sliding_window_pattern\" is missing");
  bool has_window = false;
  model.more_keys = [&](GgufBuilder& builder) {
    builder.AddArray("gemma4.attention.sliding_window_pattern", ValueType::kBool, pattern);
    if (has_window) builder.AddUint32("gemma4.attention.sliding_window", 16);
  };
  EXPECT_EQ(message(), "key \"gemma4.attention.sliding_window\" is missing");
  has_window = true;
  EXPECT_EQ(message(), "");
  model.skip = [](const std::string& name) { return name == "rope_freqs.weight"; };
  EXPECT_EQ(message(), "tensor \"rope_freqs.weight\" is missing");
  model.skip = [](const std::string& name) { return name == "blk.1.attn_v.weight"; };
  EXPECT_THAT(SpecOf(model)->values_are_keys, ElementsAre(false, true));
  pattern = {1};
  EXPECT_EQ(
      message(),
      "key \"gemma4.attention.sliding_window_pattern\": needed 2 values, one per layer, found "
      "1");
}

// As in a file of a fine-tuned model: the table's pattern is only what most files mean.
TEST(ReadGroupsTest, APatternInTheFileCountsMoreThanTheTables) {
  TinyModel model;
  model.architecture = "gemma2";
  model.layers = 6;
  const auto layers = [&](std::function<void(GgufBuilder&)> more_keys) {
    model.more_keys = [&](GgufBuilder& builder) {
      builder.AddUint32("gemma2.attention.sliding_window", 16);
      more_keys(builder);
    };
    const auto spec = SpecOf(model);
    EXPECT_TRUE(spec.ok()) << spec.status();
    return spec.ok() ? spec->kv_groups.front().layers : std::vector<uint32_t>();
  };
  const char key[] = "gemma2.attention.sliding_window_pattern";
  EXPECT_THAT(layers([](GgufBuilder&) {}), ElementsAre(1, 3, 5));
  EXPECT_THAT(layers([&](GgufBuilder& builder) { builder.AddUint32(key, 3); }), ElementsAre(2, 5));
  EXPECT_THAT(layers([&](GgufBuilder& builder) { builder.AddUint32(key, 1); }),
              ElementsAre(0, 1, 2, 3, 4, 5));
  const std::vector<uint8_t> flags = {1, 0, 0, 1, 1, 1};
  EXPECT_THAT(layers([&](GgufBuilder& builder) { builder.AddArray(key, ValueType::kBool, flags); }),
              ElementsAre(1, 2));
}

TEST(ReadGroupsTest, LayersAreOfTwoKindsAtMost) {
  const auto heads = [](std::vector<uint32_t> list) {
    return After({"attention.head_count_kv"}, [list](GgufBuilder& builder) {
      builder.AddArray("llama.attention.head_count_kv", ValueType::kUint32, list);
    });
  };
  EXPECT_EQ(heads({1, 2, 4, 4}),
            "layers of 3 kinds by window and KV heads are not supported, at most 2");
  EXPECT_THAT(heads({2, 4, 4, 2}), HasSubstr("tensor "));  // whose rows are of two heads
}

TEST(ReadGroupsTest, AWindowThatTheContextOutgrowsIsKept) {
  TinyModel model;
  model.architecture = "gemma2";
  model.context = 128;
  model.more_keys = [](GgufBuilder& builder) {
    builder.AddUint32("gemma2.attention.sliding_window", 128);
  };
  const BuiltModel built = BuildTiny(model);
  EXPECT_EQ(BuildSpec(built.file)->kv_groups.size(), 1u);
  const ModelSpec extended = *BuildSpec(built.file, {.rope_scale = 2});
  EXPECT_EQ(extended.context_length, 256u);
  ASSERT_EQ(extended.kv_groups.size(), 2u);
  EXPECT_EQ(extended.kv_groups[1].window_tokens, 128u);
}

TEST(ReadGroupsTest, LayersWithoutACacheNeedOneOfTheirKind) {
  const auto readers = [](uint32_t count) {
    return After({}, [&](GgufBuilder& builder) {
      builder.AddUint32("llama.attention.shared_kv_layers", count);
    });
  };
  EXPECT_EQ(readers(2), "");
  EXPECT_EQ(readers(3),
            "key \"llama.attention.shared_kv_layers\": needed at least 2 of the 4 layers to have a "
            "cache, found 3 without one");
  EXPECT_NE(readers(UINT32_MAX), "");

  TinyModel model;
  model.architecture = "gemma3";
  model.layers = 4;
  model.qk_norm = true;
  model.more_keys = [](GgufBuilder& builder) {
    builder.AddUint32("gemma3.attention.sliding_window", 16);
    builder.AddUint32("gemma3.attention.shared_kv_layers", 1);
  };
  EXPECT_EQ(SpecOf(model).status().message(), "");  // all have windows
  model.layers = 6;                                 // the last has none, the one before it has
  EXPECT_EQ(SpecOf(model).status().message(),
            "key \"gemma3.attention.shared_kv_layers\": layer 5 would read the cache of layer 4, "
            "which has another window or other heads");
  model.architecture = "minimax-m2";
  model.more_keys = [](GgufBuilder& builder) {
    builder.AddUint32("minimax-m2.attention.shared_kv_layers", 1);
  };
  EXPECT_EQ(SpecOf(model).status().message(),
            "key \"minimax-m2.attention.shared_kv_layers\": layers without a cache are not "
            "supported with norms over all heads");
}

}  // namespace
}  // namespace tandem::model
