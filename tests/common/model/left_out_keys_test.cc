// Files that leave out a key, or have one that their tensors or other files contradict.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "common/model/build_spec.h"
#include "tests/common/model/tiny_model.h"

namespace tandem::model {
namespace {

absl::StatusOr<ModelSpec> SpecOf(const TinyModel& model) {
  return BuildSpec(BuildTiny(model).file);
}

std::string BytesOf(const std::string& path) {
  std::ifstream in("tests/golden/" + path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

absl::StatusOr<ModelSpec> SpecOfBytes(const std::string& bytes) {
  const auto file = gguf::File::Parse(std::as_bytes(std::span(bytes)));
  if (!file.ok()) return file.status();
  return BuildSpec(*file);
}

// Renamed, so that all offsets stay.
std::string WithoutKey(std::string bytes, const std::string& key) {
  const size_t at = bytes.find(key);
  EXPECT_NE(at, std::string::npos) << key;
  bytes[at + key.size() - 1] = '_';
  return bytes;
}

// With a number before the other keys, and another key so long that the data stay aligned.
std::string WithKey(std::string bytes, const std::string& key, uint32_t value) {
  constexpr size_t kCountOfKeys = 16, kKeys = 24, kAlignment = 32;
  std::string added;
  const auto append = [&](auto number) {
    added.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  const auto append_key = [&](const std::string& name, uint32_t number) {
    append(uint64_t{name.size()});
    added += name;
    append(static_cast<uint32_t>(gguf::ValueType::kUint32));
    append(number);
  };
  append_key(key, value);
  const size_t rest = (added.size() + sizeof(uint64_t) + 2 * sizeof(uint32_t)) % kAlignment;
  append_key(std::string(kAlignment - rest, '_'), 0);
  bytes.insert(kKeys, added);
  bytes[kCountOfKeys] = static_cast<char>(bytes[kCountOfKeys] + 2);
  return bytes;
}

TEST(LeftOutKeysTest, ExpertsWithABiasOfTheirSelectionAreScoredBySigmoids) {
  const std::string path = "arch/deepseek2-v3-split/model.gguf";
  const auto stated = SpecOfBytes(BytesOf(path));
  const auto not_stated = SpecOfBytes(WithoutKey(BytesOf(path), "deepseek2.expert_gating_func"));
  ASSERT_TRUE(stated.ok() && not_stated.ok()) << stated.status() << not_stated.status();
  EXPECT_TRUE(stated->moe->sigmoid);
  EXPECT_EQ(*not_stated, *stated);
  const auto without_bias = SpecOfBytes(BytesOf("arch/deepseek2-lite/model.gguf"));
  ASSERT_TRUE(without_bias.ok()) << without_bias.status();
  EXPECT_FALSE(without_bias->moe->sigmoid);
}

TEST(LeftOutKeysTest, ARankOfQueriesWithoutItsTensorsIsNone) {
  const std::string path = "arch/deepseek2-lite/model.gguf";
  const auto lite = SpecOfBytes(BytesOf(path));
  const auto stated = SpecOfBytes(WithKey(BytesOf(path), "deepseek2.attention.q_lora_rank", 32));
  ASSERT_TRUE(lite.ok() && stated.ok()) << lite.status() << stated.status();
  EXPECT_EQ(*stated, *lite);
  EXPECT_EQ(stated->mla->q_rank, 0u);
  const auto v3 = SpecOfBytes(BytesOf("arch/deepseek2-v3/model.gguf"));
  ASSERT_TRUE(v3.ok()) << v3.status();
  EXPECT_GT(v3->mla->q_rank, 0u);
}

TEST(LeftOutKeysTest, Gemma2HasItsCapsAndWindowUnlessTheFileSaysOtherwise) {
  TinyModel model;
  model.architecture = "gemma2";
  model.context = 8192;
  const auto spec = SpecOf(model);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->attention_softcap, 50.0f);
  EXPECT_EQ(spec->logit_softcap, 30.0f);
  ASSERT_EQ(spec->kv_groups.size(), 2u);
  EXPECT_EQ(spec->kv_groups[1].window_tokens, 4096u);
  model.more_keys = [](gguf::GgufBuilder& builder) {
    builder.AddFloat("gemma2.attn_logit_softcapping", 0.0f);
    builder.AddFloat("gemma2.final_logit_softcapping", 7.0f);
  };
  EXPECT_EQ(SpecOf(model)->attention_softcap, 0.0f);
  EXPECT_EQ(SpecOf(model)->logit_softcap, 7.0f);
}

TEST(LeftOutKeysTest, LayersWithAWindowOfTheseModelsRotateAsTheOthersDo) {
  TinyModel model;
  model.architecture = "gemma2";
  model.more_keys = [](gguf::GgufBuilder& builder) {
    builder.AddFloat("gemma2.rope.freq_base_swa", 10000.0f);
  };
  EXPECT_TRUE(SpecOf(model).ok());
  model.more_keys = [](gguf::GgufBuilder& builder) {
    builder.AddFloat("gemma2.rope.freq_base_swa", 5000.0f);
  };
  EXPECT_EQ(SpecOf(model).status().message(),
            "key \"gemma2.rope.freq_base_swa\": another base of layers with a window than the "
            "others' 10000 is not supported with architecture gemma2, found 5000");
}

}  // namespace
}  // namespace tandem::model
