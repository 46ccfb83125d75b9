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
  EXPECT_EQ(After([](ModelSpec& s) { s.kv_groups = {{0, {0}}, {8, {1}}}; }), "");
}

}  // namespace
}  // namespace tandem::model
