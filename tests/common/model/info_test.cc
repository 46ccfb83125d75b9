#include "common/model/info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/model/build_spec.h"
#include "common/model/fingerprint.h"
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

TEST(InfoTest, SaysWhyASizeIsNotPossible) {
  const auto info = InfoOfGolden("arch/qwen2/model.gguf");  // 6 heads
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_TRUE(info->parallel[1].possible);
  EXPECT_FALSE(info->parallel[2].possible);
  const std::string text = FormatInfo(*info);
  EXPECT_THAT(text, HasSubstr("architecture  qwen2\n"));
  EXPECT_THAT(text, HasSubstr("6 heads over 2 KV heads of size 16"));
  EXPECT_THAT(text, HasSubstr("features      tied embeddings, QKV bias\n"));
  EXPECT_THAT(text, HasSubstr("TP 2  yes: per rank heads 3, KV heads 1, weights"));
  EXPECT_THAT(text, HasSubstr("TP 4  no: "));
  EXPECT_THAT(text, HasSubstr("4 does not divide the 6 query heads"));
}

TEST(InfoTest, ANameCannotWriteToTheTerminal) {
  TinyModel model;
  model.more_keys = [](gguf::GgufBuilder& builder) {
    builder.AddString("general.name", "good\nbad\x1b[2J \xc3\xa9");
  };
  const BuiltModel built = BuildTiny(model);
  const auto spec = BuildSpec(built.file);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const std::string text = FormatInfo(*DescribeModel(built.file, *spec));
  EXPECT_THAT(text, HasSubstr("good\\nbad\\x1b[2J \xc3\xa9\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(FingerprintTest, TellsMetadataDirectoryAndSizeApart) {
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

}  // namespace
}  // namespace tandem::model
