#include "common/model/info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "common/model/build_spec.h"
#include "common/model/fingerprint.h"
#include "tests/common/gguf/gguf_builder.h"
#include "tests/common/model/tiny_model.h"

namespace tandem::model {
namespace {

using testing::HasSubstr;
using testing::Not;

absl::StatusOr<ModelInfo> InfoOfGolden(const std::string& path) {
  const auto file = gguf::File::Open("tests/golden/" + path);
  if (!file.ok()) return file.status();
  const auto spec = BuildSpec(*file);
  if (!spec.ok()) return spec.status();
  return DescribeModel(*file, *spec);
}

TEST(InfoTest, CountsTypesAndRanks) {
  const auto info = InfoOfGolden("quant/models/Q4_K_M.gguf");
  ASSERT_TRUE(info.ok()) << info.status();
  ASSERT_EQ(info->types.size(), 3u);
  EXPECT_EQ(info->types[0].type, tensor::Type::kQ4_K);
  EXPECT_EQ(info->types[0].tensors, 13u);
  EXPECT_EQ(info->types[1].type, tensor::Type::kQ6_K);
  EXPECT_EQ(info->types[2].type, tensor::Type::kF32);
  EXPECT_EQ(info->tensors, 27u);
  EXPECT_EQ(info->kv_bytes_per_token_f16, 2u * 2 * (32 + 32) * 2);
  ASSERT_EQ(info->parallel.size(), 4u);
  EXPECT_TRUE(info->parallel[3].possible);
  EXPECT_EQ(info->parallel[3].heads_per_rank, 1u);
  EXPECT_EQ(info->parallel[3].kv_heads_per_rank, 1u);
  EXPECT_LT(info->parallel[1].weight_bytes_per_rank, info->parallel[0].weight_bytes_per_rank);
}

TEST(InfoTest, ARecurrentStateIsCountedPerSequence) {
  const auto info = InfoOfGolden("arch/qwen35/model.gguf");
  ASSERT_TRUE(info.ok()) << info.status();
  const uint64_t state = 4u * 4 * (3 * 512 + 4 * 64 * 64);  // 4 of the 6 layers
  EXPECT_EQ(info->state_bytes_per_sequence, state);
  EXPECT_EQ(info->kv_bytes_per_token_f16, 2u * 2 * (32 + 32) * 2);
  EXPECT_EQ(info->parallel[1].state_bytes_per_sequence_per_rank, state / 2);
  const std::string text = FormatInfo(*info);
  EXPECT_THAT(text, HasSubstr("state         280 KiB per sequence in F32, layers 0, 1, 3, 4\n"));
  EXPECT_THAT(text, HasSubstr("  full attention: 512 B per token in F16, layers 2, 5\n"));
  EXPECT_EQ(info->sequence_bytes, state + 2048 * 512);
  EXPECT_THAT(text,
              HasSubstr("sequence      1.27 MiB for 2048 tokens, KV cache in F16, and state\n"));
  EXPECT_THAT(text, HasSubstr(" per token, state 140 KiB per sequence\n"));
  EXPECT_THAT(text, HasSubstr("4 does not divide the 2 key heads of recurrent layers"));
}

TEST(InfoTest, AnImpossibleSizeHasItsReason) {
  const auto info = InfoOfGolden("arch/qwen2/model.gguf");  // 6 heads
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_TRUE(info->parallel[1].possible);
  EXPECT_EQ(info->parallel[2].size, 3);
  EXPECT_TRUE(info->parallel[2].possible);
  EXPECT_FALSE(info->parallel[3].possible);
  const std::string text = FormatInfo(*info);
  EXPECT_THAT(text, HasSubstr("architecture  qwen2\n"));
  EXPECT_THAT(text, HasSubstr("6 heads over 2 KV heads of size 16"));
  EXPECT_THAT(text, HasSubstr("features      tied embeddings, QKV bias\n"));
  EXPECT_THAT(text, HasSubstr("TP 2  yes: per rank heads 3, KV heads 1, weights"));
  EXPECT_THAT(text, HasSubstr("TP 4  no: "));
  EXPECT_THAT(text, HasSubstr("4 does not divide the 6 query heads"));
}

// Every number of ranks that MakeShardPlan takes is listed, up to the heads themselves.
TEST(InfoTest, ListsEveryPossibleSize) {
  TinyModel model;
  model.heads = 14;
  model.kv_heads = 7;
  const BuiltModel built = BuildTiny(model);
  const auto spec = BuildSpec(built.file);
  ASSERT_TRUE(spec.ok()) << spec.status();
  std::vector<int> possible;
  const auto info = DescribeModel(built.file, *spec);
  ASSERT_TRUE(info.ok()) << info.status();
  for (const ParallelInfo& parallel : info->parallel) {
    if (parallel.possible) possible.push_back(parallel.size);
  }
  EXPECT_EQ(possible, (std::vector<int>{1, 2, 7, 14}));
}

// Memory for the weights of a rank and exactly 100 tokens, then one byte less.
TEST(InfoTest, TokensThatFitBesideTheWeights) {
  const auto file = gguf::File::Open("tests/golden/arch/qwen2/model.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto spec = BuildSpec(*file);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const ParallelInfo one = DescribeModel(*file, *spec)->parallel[0];
  EXPECT_FALSE(one.tokens_that_fit.has_value());
  const uint64_t memory = one.weight_bytes_per_rank + 100 * one.kv_bytes_per_token_per_rank;
  const auto exact = DescribeModel(*file, *spec, {.memory_bytes = memory});
  EXPECT_EQ(exact->parallel[0].tokens_that_fit, 100u);
  EXPECT_GT(exact->parallel[1].tokens_that_fit, 200u);
  EXPECT_FALSE(exact->parallel[3].tokens_that_fit.has_value());  // 4 is not possible
  EXPECT_THAT(FormatInfo(*exact), HasSubstr(" hold them and 100 tokens\n"));
  EXPECT_EQ(DescribeModel(*file, *spec, {.memory_bytes = memory - 1})->parallel[0].tokens_that_fit,
            99u);

  const auto wide =
      DescribeModel(*file, *spec, {.kv_type = tensor::Type::kF32, .memory_bytes = memory});
  EXPECT_EQ(wide->parallel[0].tokens_that_fit, 50u);
  EXPECT_THAT(FormatInfo(*wide), HasSubstr(", F32 KV cache "));
  const auto blocks = DescribeModel(*file, *spec, {.kv_type = tensor::Type::kQ8_0});
  EXPECT_EQ(blocks.status().code(), absl::StatusCode::kInvalidArgument) << blocks.status();

  const auto tight = DescribeModel(*file, *spec, {.memory_bytes = one.weight_bytes_per_rank - 1});
  EXPECT_EQ(tight->parallel[0].tokens_that_fit, 0u);
  EXPECT_THAT(FormatInfo(*tight), HasSubstr("the weights alone are more than "));
}

// A layer that keeps 16 tokens costs no more after 16, for each sequence.
TEST(InfoTest, WindowsKeepOnlyTheirTokens) {
  const auto file = gguf::File::Open("tests/golden/arch/gpt-oss/model.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto spec = BuildSpec(*file);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const ParallelInfo one = DescribeModel(*file, *spec)->parallel[0];
  const uint64_t layer = one.kv_bytes_per_token_per_rank / 4;
  const auto fits = [&](uint64_t kept_tokens_of_layers) {
    const uint64_t memory = one.weight_bytes_per_rank + kept_tokens_of_layers * layer;
    return DescribeModel(*file, *spec, {.memory_bytes = memory})->parallel[0].tokens_that_fit;
  };
  EXPECT_EQ(fits(4 * 10), 10u);
  EXPECT_EQ(fits(2 * 100 + 2 * 16), 100u);
  EXPECT_EQ(fits(2 * 100 + 2 * 16 - 1), 99u);
  const uint64_t whole = 2 * spec->context_length + 2 * 16;
  EXPECT_EQ(fits(3 * whole), 3 * spec->context_length);
  EXPECT_EQ(fits(3 * whole + 2 * 20 + 2 * 16), 3 * spec->context_length + 20);
  EXPECT_THAT(FormatInfo(*DescribeModel(*file, *spec)),
              HasSubstr("  the last 16 tokens: 256 B per token in F16, layers 0, 2\n"));
}

// Groups with windows and heads of their own, and layers without a cache.
TEST(InfoTest, KvBytesByGroup) {
  const auto file = gguf::File::Open("tests/golden/arch/gemma4/model.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto info = DescribeModel(*file, *BuildSpec(*file), {.kv_type = tensor::Type::kQ8_0});
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->group_bytes_per_token, (std::vector<uint64_t>{2 * 4 * 34, 4 * 2 * 2 * 34}));
  EXPECT_EQ(info->sequence_bytes, 2048u * 2 * 4 * 34 + 24 * 4 * 2 * 2 * 34);
  const std::string text = FormatInfo(*info);
  EXPECT_THAT(text, HasSubstr("KV cache      1.5 KiB per token in F16, 3 KiB in F32\n"
                              "  full attention: 272 B per token in Q8_0, layer 4, read by layer 7 "
                              "too\n"
                              "  the last 24 tokens: 544 B per token in Q8_0, layers 0 to 3, read "
                              "by layers 5, 6 too\n"
                              "sequence      557 KiB for 2048 tokens, KV cache in Q8_0\n"));
}

TEST(InfoTest, ChunksAndInterleavedExperts) {
  const auto info = InfoOfGolden("arch/llama4-chunk/model.gguf");
  ASSERT_TRUE(info.ok()) << info.status();
  const std::string text = FormatInfo(*info);
  EXPECT_THAT(text, HasSubstr("  chunks of 32 tokens: 512 B per token in F16, layers 0 to 2, 4\n"));
  EXPECT_THAT(
      text,
      HasSubstr("1 per token, scored by sigmoids, in 1 layer of 2, shared ones of FFN size 32\n"));
  EXPECT_THAT(text, HasSubstr(", adjacent, none in 1 layer of 4\n"));
}

TEST(InfoTest, ExpertsAndTheLatentCache) {
  const auto lite = InfoOfGolden("arch/deepseek2-v3/model.gguf");
  ASSERT_TRUE(lite.ok()) << lite.status();
  const MlaSpec& mla = *lite->spec.mla;
  EXPECT_EQ(lite->kv_bytes_per_token_f16, 3u * lite->spec.head_dim * 2);
  EXPECT_EQ(lite->kv_bytes_per_token_unabsorbed,
            3u * 4 * (mla.nope_dims + mla.rope_dims + mla.value_dims) * 2);
  EXPECT_THAT(FormatInfo(*lite), HasSubstr("latent cache  rows of 40 values; the heads' own K and "
                                           "V would take "));
  const auto moe = InfoOfGolden("arch/qwen2moe/model.gguf");
  ASSERT_TRUE(moe.ok()) << moe.status();
  EXPECT_FALSE(moe->kv_bytes_per_token_unabsorbed.has_value());
  EXPECT_THAT(FormatInfo(*moe), HasSubstr(" per token, shared ones of FFN size "));
}

TEST(InfoTest, ANameCannotWriteToTheTerminal) {
  TinyModel model;
  model.more_keys = [](gguf::GgufBuilder& builder) {
    builder.AddString("general.name", "good\nbad\x1b[2J \xc3\xa9 \xff \xc2\x9b");
  };
  const BuiltModel built = BuildTiny(model);
  const auto spec = BuildSpec(built.file);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const std::string text = FormatInfo(*DescribeModel(built.file, *spec));
  EXPECT_THAT(text, HasSubstr("good\uFFFDbad\uFFFD[2J \u00e9 \uFFFD \uFFFD\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(FingerprintTest, DistinguishesMetadataDirectoryAndSize) {
  const BuiltModel model = BuildTiny(TinyModel());
  const uint64_t fingerprint = ModelFingerprint(model.file);
  EXPECT_EQ(ModelFingerprint(BuildTiny(TinyModel()).file), fingerprint);

  TinyModel named;
  named.more_keys = [](gguf::GgufBuilder& builder) { builder.AddString("general.name", "x"); };
  EXPECT_NE(ModelFingerprint(BuildTiny(named).file), fingerprint);

  TinyModel wider;
  wider.matrix_type = tensor::Type::kF16;
  EXPECT_NE(ModelFingerprint(BuildTiny(wider).file), fingerprint);

  std::vector<std::byte> longer = model.bytes;
  longer.resize(longer.size() + 64);
  EXPECT_NE(ModelFingerprint(*gguf::File::Parse(longer)), fingerprint);
}

TEST(FingerprintTest, DistinguishesWeights) {
  const auto with_bytes = [](size_t size, size_t changed) {
    std::vector<std::byte> weights(size);
    weights[changed] = std::byte{1};
    gguf::GgufBuilder builder;
    builder.AddTensor("w", {size / 4}, tensor::Type::kF32, weights);
    const std::vector<std::byte> bytes = builder.Build();
    return ModelFingerprint(*gguf::File::Parse(bytes));
  };
  for (const size_t size : {size_t{4096}, size_t{1} << 20}) {
    const std::set<uint64_t> found = {with_bytes(size, 0), with_bytes(size, size - 1),
                                      with_bytes(size, 1)};
    EXPECT_EQ(found.size(), 3u) << size;
  }
}

// Opens a model of two files; the second one's tensor has `name` and `values`.
uint64_t SplitFingerprint(const std::string& name, size_t values) {
  for (const uint32_t number : {0u, 1u}) {
    gguf::GgufBuilder builder;
    builder.AddUint32("split.no", number).AddUint32("split.count", 2);
    builder.AddUint32("split.tensors.count", 1);
    if (number == 1) {
      builder.AddTensor(name, {values}, tensor::Type::kF32, std::vector<std::byte>(4 * values));
    }
    const std::vector<std::byte> bytes = builder.Build();
    std::ofstream out(testing::TempDir() + "m-0000" + std::to_string(number + 1) + "-of-00002.gguf",
                      std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }
  const auto file = gguf::File::Open(testing::TempDir() + "m-00001-of-00002.gguf");
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? ModelFingerprint(*file) : 0;
}

TEST(FingerprintTest, CoversEveryFileOfASplitModel) {
  const uint64_t fingerprint = SplitFingerprint("a", 4);
  EXPECT_NE(fingerprint, 0u);
  EXPECT_EQ(SplitFingerprint("a", 4), fingerprint);
  EXPECT_NE(SplitFingerprint("b", 4), fingerprint);
  EXPECT_NE(SplitFingerprint("a", 5), fingerprint);
}

}  // namespace
}  // namespace tandem::model
