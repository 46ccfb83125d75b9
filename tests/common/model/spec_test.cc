#include "common/model/spec.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tandem::model {
namespace {

ModelSpec Good() {
  ModelSpec spec;
  spec.num_layers = 2;
  spec.hidden_size = 16;
  spec.num_heads = 4;
  spec.num_kv_heads = 2;
  spec.head_dim = spec.value_dim = 4;
  spec.ffn_size = 32;
  spec.vocab_size = 10;
  spec.context_length = 64;
  spec.attention_scale = 0.5f;
  spec.rope.rotary_dims = 4;
  spec.rope.inv_freq = {1.0f, 0.01f};
  spec.kv_groups = {{0, {0, 1}}};
  return spec;
}

// Validate's message after one change.
template <typename Change>
std::string After(Change change) {
  ModelSpec spec = Good();
  change(spec);
  return std::string(spec.Validate().message());
}

TEST(ModelSpecTest, AGoodSpecIsValidAndComparable) {
  EXPECT_TRUE(Good().Validate().ok()) << Good().Validate();
  EXPECT_EQ(Good(), Good());
  ModelSpec other = Good();
  other.rope.inv_freq[1] = 0.02f;
  EXPECT_NE(other, Good());
}

TEST(ModelSpecTest, EverySizeIsBounded) {
  EXPECT_EQ(After([](ModelSpec& s) { s.num_layers = 0; }),
            "block_count: needed 1 to 4096, found 0");
  EXPECT_NE(After([](ModelSpec& s) { s.hidden_size = UINT32_MAX; }), "");
  EXPECT_NE(After([](ModelSpec& s) { s.vocab_size = 0; }), "");
  EXPECT_NE(After([](ModelSpec& s) { s.ffn_size = 1u << 31; }), "");
  EXPECT_NE(After([](ModelSpec& s) { s.context_length = UINT32_MAX; }), "");
  EXPECT_NE(After([](ModelSpec& s) { s.num_kv_heads = 3; }), "");
  EXPECT_EQ(After([](ModelSpec& s) {
              s.num_heads = 1 << 14;
              s.head_dim = s.value_dim = 4096;
            }),
            "attention.key_length: needed at most 1024 with 16384 heads, found 4096");
  EXPECT_NE(After([](ModelSpec& s) { s.norm_epsilon = NAN; }), "");
  EXPECT_NE(After([](ModelSpec& s) { s.attention_scale = 0; }), "");
}

TEST(ModelSpecTest, RopeIsConsistent) {
  EXPECT_NE(After([](ModelSpec& s) { s.rope.rotary_dims = 6; }), "");
  EXPECT_NE(After([](ModelSpec& s) { s.rope.inv_freq.pop_back(); }), "");
  EXPECT_NE(After([](ModelSpec& s) { s.rope.inv_freq[0] = INFINITY; }), "");
  EXPECT_NE(After([](ModelSpec& s) { s.rope.magnitude = 0; }), "");
}

TEST(ModelSpecTest, EveryLayerIsInExactlyOneGroup) {
  EXPECT_EQ(After([](ModelSpec& s) { s.kv_groups = {{0, {0}}}; }), "layer 1 is in no KV group");
  EXPECT_EQ(After([](ModelSpec& s) {
              s.kv_groups = {{0, {0, 1}}, {8, {1}}};
            }),
            "layer 1 is in two KV groups");
  EXPECT_EQ(After([](ModelSpec& s) {
              s.kv_groups = {{0, {0, 1, 2}}};
            }),
            "a KV group has layer 2 of 2");
  EXPECT_EQ(After([](ModelSpec& s) {
              s.kv_groups = {{0, {1, 0}}};
            }),
            "layer 0 comes after layer 1 in a KV group");
  EXPECT_EQ(After([](ModelSpec& s) { s.kv_groups = {{0, {0}}, {8, {1}}}; }), "");
}

TEST(ModelSpecTest, AGroupMayHaveHeadsOfItsOwn) {
  const auto heads = [](HeadSizes sizes) {
    return After([&](ModelSpec& s) { s.kv_groups = {{0, {0}}, {8, {1}, sizes}}; });
  };
  EXPECT_EQ(heads({1, 8, 8}), "");
  EXPECT_EQ(heads({3, 8, 8}), "the 4 query heads cannot share 3 KV heads evenly");
  EXPECT_EQ(heads({1, 0, 0}), "attention.key_length: needed 1 to 16384, found 0");
  EXPECT_NE(heads({1, 2, 2}), "");  // fewer dims than rotate
  ModelSpec spec = Good();
  spec.kv_groups = {{0, {0}}, {8, {1}, HeadSizes{1, 8, 8}}};
  EXPECT_EQ(spec.HeadsOf(0u), (HeadSizes{2, 4, 4}));
  EXPECT_EQ(spec.HeadsOf(1u), (HeadSizes{1, 8, 8}));
}

TEST(ModelSpecTest, AReaderReadsTheCacheOfAnEarlierLayerOfItsGroup) {
  const auto reader = [](uint32_t layer, uint32_t source) {
    return After([&](ModelSpec& s) {
      s.kv_groups = {{0, {source}, std::nullopt, {{layer, source}}}};
    });
  };
  EXPECT_EQ(reader(1, 0), "");
  EXPECT_EQ(reader(0, 1),
            "layer 0 reads the cache of layer 1, which is not an earlier one of its KV group");
  EXPECT_EQ(After([](ModelSpec& s) {
              s.kv_groups = {{0, {0}}, {8, {}, std::nullopt, {{1, 0}}}};
            }),
            "layer 1 reads the cache of layer 0, which is not an earlier one of its KV group");
  ModelSpec spec = Good();
  spec.kv_groups = {{0, {0}, HeadSizes{1, 8, 8}, {{1, 0}}}};
  EXPECT_TRUE(spec.HasCache(0));
  EXPECT_FALSE(spec.HasCache(1));
  EXPECT_EQ(spec.HeadsOf(1u), (HeadSizes{1, 8, 8}));
}

TEST(ModelSpecTest, FfnSizesOfLayersAreCounted) {
  EXPECT_EQ(After([](ModelSpec& s) { s.layer_ffn_sizes = {16, 32}; }), "");
  EXPECT_EQ(After([](ModelSpec& s) { s.layer_ffn_sizes = {16}; }),
            "feed_forward_length: needed 2 values, one per layer, found 1");
  EXPECT_EQ(After([](ModelSpec& s) {
              s.layer_ffn_sizes = {0, 32};
            }),
            "feed_forward_length: needed 1 to 32, found 0");
}

}  // namespace
}  // namespace tandem::model
