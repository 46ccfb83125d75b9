#include "common/model/build_rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "common/model/build_spec.h"
#include "tests/common/model/tiny_model.h"

namespace tandem::model {
namespace {

RopeSpec Rope(uint32_t dims, float base) {
  RopeSpec rope;
  rope.rotary_dims = dims;
  rope.base = base;
  return rope;
}

TEST(FoldFrequenciesTest, PlainIsAPowerOfTheBase) {
  RopeSpec rope = Rope(8, 10000.0f);
  FoldFrequencies({}, rope);
  ASSERT_EQ(rope.inv_freq.size(), 4u);
  EXPECT_FLOAT_EQ(rope.inv_freq[0], 1.0f);
  EXPECT_FLOAT_EQ(rope.inv_freq[1], 0.1f);
  EXPECT_FLOAT_EQ(rope.inv_freq[2], 0.01f);
  EXPECT_FLOAT_EQ(rope.inv_freq[3], 0.001f);
  EXPECT_EQ(rope.magnitude, 1.0f);
}

TEST(FoldFrequenciesTest, FactorsDivideAndLinearScalingDividesAll) {
  RopeSpec rope = Rope(8, 10000.0f);
  rope.scaling = RopeScalingKind::kLinear;
  rope.factor = 2.0f;
  const float factors[] = {1, 2, 4, 8};
  FoldFrequencies(factors, rope);
  EXPECT_FLOAT_EQ(rope.inv_freq[0], 0.5f);
  EXPECT_FLOAT_EQ(rope.inv_freq[1], 0.1f / 4);
  EXPECT_FLOAT_EQ(rope.inv_freq[3], 0.001f / 16);
  EXPECT_EQ(rope.magnitude, 1.0f);
}

// The paper's ramp, worked out by hand for 16 dims, base 10000 and an original context of 64:
// pair(rotations) = 16 ln(64 / (2 pi rotations)) / (2 ln 10000); pair(32) = -0.99, so low = 0;
// pair(1) = 2.016, so high = 3.
TEST(FoldFrequenciesTest, YarnKeepsFastPairsAndInterpolatesSlowOnes) {
  RopeSpec rope = Rope(16, 10000.0f);
  rope.scaling = RopeScalingKind::kYarn;
  rope.factor = 4.0f;
  rope.original_context = 64;
  FoldFrequencies({}, rope);
  const auto plain = [](int pair) { return std::pow(10000.0, -2.0 * pair / 16); };
  EXPECT_FLOAT_EQ(rope.inv_freq[0], 1.0f);
  EXPECT_FLOAT_EQ(rope.inv_freq[1], static_cast<float>(plain(1) * (2.0 / 3 + 1.0 / 3 / 4)));
  EXPECT_FLOAT_EQ(rope.inv_freq[2], static_cast<float>(plain(2) * (1.0 / 3 + 2.0 / 3 / 4)));
  for (int pair = 3; pair < 8; ++pair) {
    EXPECT_FLOAT_EQ(rope.inv_freq[pair], static_cast<float>(plain(pair) / 4)) << pair;
  }
  EXPECT_FLOAT_EQ(rope.magnitude, 1.1386294f);  // 1 + 0.1 ln 4
}

RopeSpec RopeOf(const std::function<void(gguf::GgufBuilder&)>& keys) {
  TinyModel model;
  model.more_keys = keys;
  const BuiltModel built = BuildTiny(model);
  const auto spec = BuildSpec(built.file);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? spec->rope : RopeSpec();
}

TEST(ReadRopeTest, DefaultsAreTheWholeHeadAndBase10000) {
  const RopeSpec rope = RopeOf([](gguf::GgufBuilder&) {});
  EXPECT_EQ(rope.rotary_dims, 8u);
  EXPECT_EQ(rope.base, 10000.0f);
  EXPECT_EQ(rope.scaling, RopeScalingKind::kNone);
  EXPECT_EQ(rope.original_context, 128u);
}

TEST(ReadRopeTest, AFactorWithoutATypeIsLinear) {
  for (const std::string key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    const RopeSpec rope = RopeOf([&](gguf::GgufBuilder& builder) { builder.AddFloat(key, 4.0f); });
    EXPECT_EQ(rope.scaling, RopeScalingKind::kLinear) << key;
    EXPECT_FLOAT_EQ(rope.inv_freq[0], 0.25f) << key;
  }
}

TEST(ReadRopeTest, TypeNoneIgnoresTheFactor) {
  const RopeSpec rope = RopeOf([](gguf::GgufBuilder& builder) {
    builder.AddString("llama.rope.scaling.type", "none")
        .AddFloat("llama.rope.scaling.factor", 4.0f);
  });
  EXPECT_EQ(rope.scaling, RopeScalingKind::kNone);
  EXPECT_FLOAT_EQ(rope.inv_freq[0], 1.0f);
}

TEST(ReadRopeTest, YarnTakesItsOriginalContextAndMagnitude) {
  const RopeSpec rope = RopeOf([](gguf::GgufBuilder& builder) {
    builder.AddString("llama.rope.scaling.type", "yarn")
        .AddFloat("llama.rope.scaling.factor", 2.0f);
    builder.AddUint32("llama.rope.scaling.original_context_length", 64);
    builder.AddFloat("llama.rope.scaling.attn_factor", 0.5f);
  });
  EXPECT_EQ(rope.scaling, RopeScalingKind::kYarn);
  EXPECT_EQ(rope.original_context, 64u);
  EXPECT_FLOAT_EQ(rope.magnitude, static_cast<float>(0.5 * (1 + 0.1 * std::log(2.0))));
}

ModelSpec Mistral3(const std::function<void(gguf::GgufBuilder&)>& keys) {
  TinyModel model;
  model.architecture = "mistral3";
  model.more_keys = [&](gguf::GgufBuilder& builder) {
    builder.AddString("mistral3.rope.scaling.type", "yarn")
        .AddFloat("mistral3.rope.scaling.factor", 16.0f);
    builder.AddUint32("mistral3.rope.scaling.original_context_length", 32);
    keys(builder);
  };
  const BuiltModel built = BuildTiny(model);
  const auto spec = BuildSpec(built.file);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : ModelSpec();
}

TEST(ReadRopeTest, TheLogMultiplierDividesTheMagnitudeWhereTheTableSaysSo) {
  const double log = std::log(16.0);
  const ModelSpec without = Mistral3([](gguf::GgufBuilder&) {});
  EXPECT_FLOAT_EQ(without.rope.magnitude, static_cast<float>(1 + 0.1 * log));
  for (const float multiplier : {0.5f, 1.0f}) {
    const ModelSpec spec = Mistral3([&](gguf::GgufBuilder& builder) {
      builder.AddFloat("mistral3.rope.scaling.yarn_log_multiplier", multiplier);
    });
    EXPECT_FLOAT_EQ(spec.rope.magnitude,
                    static_cast<float>((1 + 0.1 * log) / (1 + 0.1 * multiplier * log)));
    EXPECT_EQ(spec.attention_scale, without.attention_scale);
  }
}

// As llama.cpp has it: other architectures do not know the key.
TEST(ReadRopeTest, TheLogMultiplierIsIgnoredWhereTheTableSaysNothing) {
  const auto with = [](float multiplier) {
    return RopeOf([=](gguf::GgufBuilder& builder) {
      builder.AddString("llama.rope.scaling.type", "yarn")
          .AddFloat("llama.rope.scaling.factor", 16.0f)
          .AddFloat("llama.rope.scaling.yarn_log_multiplier", multiplier);
    });
  };
  EXPECT_EQ(with(1.0f), with(0.0f));
}

TEST(ReadRopeTest, YarnTakesItsBounds) {
  const auto with = [](float fast, float slow) {
    return Mistral3([=](gguf::GgufBuilder& builder) {
             builder.AddFloat("mistral3.rope.scaling.yarn_beta_fast", fast)
                 .AddFloat("mistral3.rope.scaling.yarn_beta_slow", slow);
           })
        .rope;
  };
  EXPECT_EQ(with(32, 1), Mistral3([](gguf::GgufBuilder&) {}).rope);
  // 32 tokens are 5.09 rotations of the fastest pair: with bounds below that it is kept alone.
  EXPECT_FLOAT_EQ(with(5, 4).inv_freq[0], 1.0f);
  EXPECT_FLOAT_EQ(with(5, 4).inv_freq[1], 0.1f / 16);
}

TEST(ReadRopeTest, TheTemperatureGrowsByOriginalContexts) {
  EXPECT_FALSE(Mistral3([](gguf::GgufBuilder&) {}).temperature.has_value());
  const ModelSpec spec = Mistral3([](gguf::GgufBuilder& builder) {
    builder.AddFloat("mistral3.attention.temperature_scale", 0.25f);
  });
  EXPECT_EQ(spec.temperature, (TemperatureSpec{.scale = 0.25f, .length = 32, .offset = 0}));
}

TEST(ReadRopeTest, OtherScalingIsRefusedByName) {
  TinyModel model;
  model.more_keys = [](gguf::GgufBuilder& builder) {
    builder.AddString("llama.rope.scaling.type", "dynamic");
  };
  const BuiltModel built = BuildTiny(model);
  EXPECT_EQ(
      BuildSpec(built.file).status(),
      absl::UnimplementedError("key \"llama.rope.scaling.type\": needed none, linear, yarn or "
                               "longrope, found \"dynamic\""));
}

TEST(FoldFrequenciesTest, NtkStretchesTheSlowestPairByTheFactorAndKeepsTheFastest) {
  RopeSpec rope = Rope(8, 10000.0f);
  FoldFrequencies({}, rope);
  const std::vector<float> plain = rope.inv_freq;
  rope.scaling = RopeScalingKind::kNtk;
  rope.factor = 4.0f;
  FoldFrequencies({}, rope);
  EXPECT_FLOAT_EQ(rope.inv_freq.front(), plain.front());
  EXPECT_FLOAT_EQ(rope.inv_freq.back(), plain.back() / 4.0f);
}

ModelSpec SpecOf(const std::string& name, const SpecOptions& options) {
  const auto file = gguf::File::Open("tests/golden/arch/" + name + "/model.gguf");
  auto spec = BuildSpec(*file, options);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : ModelSpec{};
}

TEST(SpecOptionsTest, LongRopeTakesItsLongFactorsBeyondTheOriginalContext) {
  SpecOptions options;
  const ModelSpec by_file = SpecOf("phi3", options);  // 2048 tokens, originally 64
  options.max_model_len = 65;
  EXPECT_EQ(SpecOf("phi3", options).rope.inv_freq, by_file.rope.inv_freq);
  options.max_model_len = 64;
  EXPECT_NE(SpecOf("phi3", options).rope.inv_freq, by_file.rope.inv_freq);
}

TEST(SpecOptionsTest, TheServerGoesBeforeTheFile) {
  const ModelSpec plain = SpecOf("llama", {});
  SpecOptions options = {.rope_scale = 4.0f};
  const ModelSpec stretched = SpecOf("llama", options);
  EXPECT_EQ(stretched.rope.scaling, RopeScalingKind::kLinear);
  EXPECT_EQ(stretched.context_length, 4 * plain.context_length);
  EXPECT_FLOAT_EQ(stretched.rope.inv_freq[0], plain.rope.inv_freq[0] / 4.0f);
  options = {.rope_scaling = RopeScalingKind::kNone};
  const ModelSpec unscaled = SpecOf("llama-yarn", options);
  EXPECT_EQ(unscaled.rope.factor, 1.0f);
  EXPECT_EQ(unscaled.rope.magnitude, 1.0f);
  EXPECT_FLOAT_EQ(unscaled.rope.inv_freq[0], 1.0f);
}

TEST(SpecOptionsTest, NonsenseIsRefused) {
  const auto gpt2 = gguf::File::Open("tests/golden/arch/gpt2/model.gguf");
  EXPECT_EQ(
      BuildSpec(*gpt2, {.rope_scaling = RopeScalingKind::kLinear, .rope_scale = 2.0f}).status(),
      absl::InvalidArgumentError("architecture gpt2 has no rotary positions that could be scaled"));
  const auto llama = gguf::File::Open("tests/golden/arch/llama/model.gguf");
  EXPECT_FALSE(BuildSpec(*llama, {.rope_scale = -1.0f}).ok());
}

}  // namespace
}  // namespace tandem::model
