// Draft heads in files: what the spec says of one that is loaded, which slices a rank has of it,
// and what is said of files that lack it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "common/model/build_spec.h"
#include "common/model/info.h"
#include "common/model/kv_bytes.h"
#include "common/model/slices.h"
#include "tests/common/model/tiny_model.h"

namespace tandem::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr SpecOptions kWithHead = {.load_draft_head = true};

gguf::File OpenGolden(const std::string& name) {
  auto file = gguf::File::Open("tests/golden/arch/" + name + "/model.gguf");
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

// A dense model of two layers, with a draft head that has no embedding, norm or output of its own.
TinyModel Tiny() {
  TinyModel model;
  model.architecture = "glm4moe";
  model.layers = 3;
  model.draft_head = true;
  return model;
}

std::string Message(const TinyModel& model, const SpecOptions& options = kWithHead) {
  const BuiltModel built = BuildTiny(model);
  const auto spec = BuildSpec(built.file, options);
  return spec.ok() ? "" : std::string(spec.status().message());
}

TEST(DraftHeadTest, OneMoreLayerWithACacheButNotOfTheModel) {
  const gguf::File file = OpenGolden("qwen35-mtp");
  const ModelSpec without = *BuildSpec(file);
  const auto spec = BuildSpec(file, kWithHead);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_FALSE(without.has_draft_head);
  EXPECT_TRUE(spec->has_draft_head);
  EXPECT_EQ(spec->num_layers, without.num_layers);
  EXPECT_EQ(spec->NumLoadedLayers(), 5u);
  EXPECT_THAT(spec->kv_groups[0].layers, ElementsAre(1, 3, 4));
  EXPECT_FALSE(spec->IsRecurrent(4));
  const ShardPlan plan = *MakeShardPlan(*spec, 0, 1);
  EXPECT_EQ(KvBytesPerToken(*spec, plan, tensor::Type::kF16) * 2,
            KvBytesPerToken(without, plan, tensor::Type::kF16) * 3);
  EXPECT_THAT(FormatInfo(*DescribeModel(file, *spec)),
              HasSubstr(", and 1 draft layer, 1 loaded as the draft head\n"));
}

// Also where a period or leading dense layers would make the block a dense one.
TEST(DraftHeadTest, IsAMixtureIfTheModelHasAny) {
  ModelSpec spec = *BuildSpec(OpenGolden("glm4moe-mtp"), kWithHead);
  EXPECT_FALSE(spec.IsMoe(0));
  EXPECT_TRUE(spec.IsMoe(spec.num_layers));
  spec.moe->first_layer = spec.num_layers + 1;
  EXPECT_TRUE(spec.IsMoe(spec.num_layers));
  spec.moe.reset();
  EXPECT_FALSE(spec.IsMoe(spec.num_layers));
}

// The draft head's slices of the last of two ranks.
std::map<Role, WeightSlice> SlicesOf(const gguf::File& file, const ModelSpec& spec) {
  std::map<Role, WeightSlice> slices;
  const auto status =
      ForEachSlice(file, spec, *MakeShardPlan(spec, 1, 2), [&](const WeightSlice& slice) {
        if (slice.layer == static_cast<int>(spec.num_layers)) slices[slice.role] = slice;
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  return slices;
}

TEST(DraftHeadTest, RanksHaveTheWholeProjectionAndTheirPartOfTheRest) {
  const gguf::File file = OpenGolden("glm4moe-mtp");
  const ModelSpec spec = *BuildSpec(file, kWithHead);
  const auto slices = SlicesOf(file, spec);
  EXPECT_EQ(slices.at(Role::kDraftProjection).rows, spec.hidden_size);
  EXPECT_EQ(slices.at(Role::kDraftProjection).cols, 2 * spec.hidden_size);
  for (const Role role : {Role::kDraftEmbedding, Role::kDraftOutput}) {
    EXPECT_EQ(slices.at(role).rows, spec.vocab_size / 2) << static_cast<int>(role);
  }
  for (const Role role :
       {Role::kDraftEmbeddingNorm, Role::kDraftHiddenNorm, Role::kDraftOutputNorm}) {
    EXPECT_EQ(slices.at(role).cols, spec.hidden_size) << static_cast<int>(role);
  }
  EXPECT_EQ(slices.at(Role::kAttnQ).rows, spec.num_heads * spec.head_dim / 2);
  EXPECT_EQ(slices.count(Role::kExpertGate), 1u);
  EXPECT_EQ(slices.count(Role::kFfnGate), 0u);
  EXPECT_TRUE(SlicesOf(file, *BuildSpec(file)).empty());
}

TEST(DraftHeadTest, ItsOwnEndsAreOptional) {
  const BuiltModel built = BuildTiny(Tiny());
  const auto spec = BuildSpec(built.file, kWithHead);
  ASSERT_TRUE(spec.ok()) << spec.status();
  for (const Feature feature :
       {Feature::kDraftNorm, Feature::kDraftEmbedding, Feature::kDraftOutput}) {
    EXPECT_FALSE(spec->Has(feature));
    EXPECT_TRUE(BuildSpec(OpenGolden("glm4moe-mtp"), kWithHead)->Has(feature));
  }
  const auto slices = SlicesOf(built.file, *spec);
  EXPECT_EQ(slices.count(Role::kDraftProjection), 1u);
  EXPECT_EQ(slices.count(Role::kDraftEmbedding), 0u);
}

TEST(DraftHeadTest, WhatTheFileLacksIsNamed) {
  TinyModel model = Tiny();
  EXPECT_EQ(Message(model), "");
  model.skip = [](const std::string& name) { return name == "blk.2.nextn.hnorm.weight"; };
  EXPECT_EQ(Message(model), "tensor \"blk.2.nextn.hnorm.weight\" of the draft head is missing");
  EXPECT_EQ(Message(model, {}), "");
  // Published files may have the key alone.
  model.skip = [](const std::string& name) { return name.starts_with("blk.2."); };
  EXPECT_EQ(Message(model), "tensor \"blk.2.attn_norm.weight\" of the draft head is missing");
  EXPECT_EQ(Message(model, {}), "");
  model.draft_head = false;
  EXPECT_EQ(Message(model),
            "the file has no draft head (--speculation mtp, --load-draft-head), needed key "
            "\"glm4moe.nextn_predict_layers\" above 0");
}

TEST(DraftHeadTest, OtherArchitecturesAndLayersHaveNone) {
  TinyModel llama = Tiny();
  llama.architecture = "llama";
  EXPECT_EQ(
      Message(llama),
      "draft heads (--speculation mtp, --load-draft-head) of architecture llama are not supported");
  EXPECT_EQ(Message(llama, {}), "");
  // The tensors without the key: the block would be the model's.
  TinyModel trunk = Tiny();
  trunk.skip_keys = {"nextn_predict_layers"};
  EXPECT_EQ(Message(trunk, {}),
            "tensor \"blk.2.nextn.eh_proj.weight\" is of a draft head, but the layer is none");
}

}  // namespace
}  // namespace tandem::model
